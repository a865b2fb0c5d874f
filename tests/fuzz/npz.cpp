#include "braid/tensor/io/npz.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz([&] {
    const braid::io::NpzFile file(std::as_bytes(std::span(data, size)), "fuzz");
    for (const std::string& name : file.names()) fuzz([&] { file.load(name); });
  });
}
