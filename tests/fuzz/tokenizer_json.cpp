#include "braid/models/data/tokenizers/tokenizer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  return fuzz([&] {
    // An accepted file gives a tokenizer that takes any text, gives ids below vocab_size(), and takes them back.
    const auto tokenizer = braid::models::text::parse_tokenizer(file, "fuzz");
    for (const std::string text : {"abc", "It's 12  <s>\n caf\u00e9 e\u0301\xFF \u2581x"}) {
      const auto ids = tokenizer->encode(text, true);
      for (const int32_t id : ids)
        if (id < 0 || id >= tokenizer->vocab_size()) __builtin_trap();
      tokenizer->decode(tokenizer->with_template(ids), true);
      braid::models::text::StreamDecoder stream(*tokenizer);
      for (const int32_t id : ids) stream.push(id);
      stream.finish();
    }
  });
}
