#include "braid/models/families/dcformer/config.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  return fuzz([&] {
    // An accepted configuration is written as one that reads the same.
    const braid::models::DcformerConfig config = braid::models::read_config(text, "fuzz");
    if (!(braid::models::read_config(braid::models::write_config(config), "fuzz") == config)) __builtin_trap();
  });
}
