#include "braid/tensor/io/weight_index.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  return fuzz([&] {
    // An accepted index names files inside of its folder, and is written as one that reads the same.
    const braid::io::WeightIndex index = braid::io::parse_weight_index(text, "fuzz");
    for (const auto& [name, file] : index.file_of)
      if (file.empty() || file.front() == '.' || file.find('/') != std::string::npos) __builtin_trap();
    const auto again = braid::io::parse_weight_index(braid::io::weight_index_text(index, 1, 1), "fuzz");
    if (again.file_of != index.file_of) __builtin_trap();
  });
}
