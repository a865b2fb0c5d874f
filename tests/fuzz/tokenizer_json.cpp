#include "braid/models/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  return fuzz([&] {
    // An accepted file gives a working tokenizer.
    const auto tokenizer = braid::models::text::parse_tokenizer(file, "fuzz");
    if (tokenizer->decode(tokenizer->encode("abc")) != "abc") __builtin_trap();
  });
}
