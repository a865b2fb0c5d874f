#include "braid/tensor/io/npy.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz([&] {
    const braid::Tensor x = braid::io::load_npy(std::as_bytes(std::span(data, size)), "fuzz");
    if (x.numel() * braid::size_of(x.dtype()) > static_cast<int64_t>(size)) __builtin_trap();
  });
}
