// The tokenizer in a GGUF file as the files of a model folder, and back (README.md).
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/tensor/io/gguf.h"

namespace braid::models::gguf {

// tokenizer.json, tokenizer_config.json, generation_config.json and, where there is a template, chat_template.jinja; no
// more than the ends of a text, generation_config.json, when the file has no tokenizer. Error(input) names a kind of
// tokenizer that Braid has no equal of.
std::map<std::string, std::string> read_tokenizer(const io::GgufFile& file);

struct WrittenTokenizer {
  std::vector<std::pair<std::string, io::GgufValue>> metadata;
  std::string note;  // on texts with other ids, for the user; "": there are none
};
// With `size` tokens. Error(setting) for a tokenizer that the format has no name for.
WrittenTokenizer write_tokenizer(const text::Tokenizer& tokenizer, int64_t size);

// The tokens that end a text, in and out. Error(setting) for more than the format has names for.
std::vector<int64_t> read_ends(const io::GgufFile& file);
void write_ends(const std::vector<int32_t>& ends, std::vector<std::pair<std::string, io::GgufValue>>& metadata);

}  // namespace braid::models::gguf
