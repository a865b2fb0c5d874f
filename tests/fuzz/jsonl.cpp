#include "braid/models/data/prepare/jsonl.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  return fuzz([&] { braid::models::text::jsonl_text(line, "text", "fuzz", 1); });
}
