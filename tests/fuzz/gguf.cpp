#include "braid/tensor/io/gguf.h"

#include "braid/models/folders/gguf/architecture.h"
#include "braid/models/folders/gguf/tokenizer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz([&] {
    const braid::io::GgufFile file(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& t : file.tensors()) {
      if (t.offset < 0 || t.bytes < 1 || t.offset + t.bytes > static_cast<int64_t>(size)) __builtin_trap();
      fuzz([&] { file.load(t); });
      if (file.in_groups(t)) fuzz([&] { file.groups(t); });
    }
    fuzz([&] { braid::models::gguf::read_config(file, braid::models::gguf::architecture_of(file)); });
    fuzz([&] { braid::models::gguf::note_on_keys(file, braid::models::gguf::architecture_of(file)); });
    fuzz([&] {
      const auto files = braid::models::gguf::read_tokenizer(file);
      if (!files.empty()) braid::models::text::tokenizer_of_files(files, "fuzz");
    });
  });
}
