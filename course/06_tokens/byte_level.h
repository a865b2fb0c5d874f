// Braid's tokenizer with given merges: a tokenizer.json of a byte-level BPE, parsed. A text is one word; byte b has the
// id b, merge number r the id 256 + r.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"

namespace chapter {

// The files contain printable characters only: a byte that is none stands as the next free character from U+0100 on.
inline std::string letter_of(int byte) {
  const auto printable = [](int b) { return (b > 32 && b < 127) || (b > 160 && b != 173); };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !printable(b);
  }
  if (code == '"' || code == '\\') return std::string("\\") + static_cast<char>(code);
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

inline std::unique_ptr<braid::models::text::Tokenizer> tokenizer_of(
    const std::vector<std::pair<int32_t, int32_t>>& merges) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(letter_of(byte));
  std::string vocabulary, list;
  for (const auto& [left, right] : merges) {
    const std::string a = tokens.at(static_cast<size_t>(left)), b = tokens.at(static_cast<size_t>(right));
    list += (list.empty() ? "[\"" : ", [\"") + a + "\", \"" + b + "\"]";
    tokens.push_back(a + b);
  }
  for (size_t id = 0; id < tokens.size(); ++id)
    vocabulary += (id ? ", \"" : "\"") + tokens[id] + "\": " + std::to_string(id);
  const std::string part = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}";
  return braid::models::text::parse_tokenizer(
      "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"post_processor\": null, "
      "\"pre_tokenizer\": " +
          part + ", \"decoder\": " + part + ", \"model\": {\"type\": \"BPE\", \"vocab\": {" + vocabulary +
          "}, \"merges\": [" + list + "]}}",
      "merges of the course");
}

}  // namespace chapter
