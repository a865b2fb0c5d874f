// The `model` WordPiece of a tokenizer.json (BERT): the longest entry of the vocabulary that a word begins with, then
// the longest one that goes on, marked by a prefix; and WordLevel: complete words.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

class WordPiece {
 public:
  struct Scratch {
    std::string piece;
    int64_t steps = 0;  // pieces looked up, for tests
  };

  WordPiece(const Section& section, bool byte_level);  // the object `model`

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  int64_t id_limit() const { return static_cast<int64_t>(tokens_.size()); }
  int32_t id_of(std::string_view token) const;
  const std::string* token(int32_t id) const;
  // Appends the ids of a word; a word with a part that is not in the vocabulary is one unknown token, and so is a word
  // of more than max_input_chars_per_word characters.
  void encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<const std::string*> tokens_;  // by id; null: none
  std::string prefix_;
  int64_t longest_ = 0;  // characters of a word that is cut
  int32_t unk_ = -1;
  bool whole_;  // WordLevel
};

}  // namespace braid::models::text
