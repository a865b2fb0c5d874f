// For targets whose input is JSON, or a byte and then JSON (BRAID_FUZZ_PREFIX of them).
#include <cstring>

#include "tests/fuzz/mutate_json.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  braid::fuzzing::Random random(seed + 1);
  constexpr size_t prefix = BRAID_FUZZ_PREFIX;
  if (size <= prefix) return LLVMFuzzerMutate(data, size, max_size);
  if (prefix > 0 && random() % 16 == 0) data[0] = static_cast<uint8_t>(random());
  const std::string made =
      braid::fuzzing::mutate_json({reinterpret_cast<const char*>(data) + prefix, size - prefix}, random);
  if (made.size() > max_size - prefix) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data + prefix, made.data(), made.size());
  return prefix + made.size();
}
