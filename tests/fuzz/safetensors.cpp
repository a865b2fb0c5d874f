#include "braid/tensor/io/safetensors.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz([&] {
    const braid::io::SafetensorsFile file(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& info : file.tensors())
      if (info.loadable && file.load(info.name).numel() * braid::size_of(info.dtype) != info.bytes) __builtin_trap();
  });
}
