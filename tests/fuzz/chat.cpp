#include "braid/models/data/prepare/chat.h"

#include "tests/fuzz/fuzz.h"

// The first byte chooses the format, the rest is the line.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string line(reinterpret_cast<const char*>(data) + 1, size - 1);
  return fuzz([&] {
    braid::models::text::SampleFormat format;
    if (data[0] % 2 == 1) format.chat = braid::models::text::ChatTemplate::parse("chatml");
    braid::models::text::make_sample(line, "fuzz at line 1", format, braid::models::text::ByteTokenizer());
  });
}
