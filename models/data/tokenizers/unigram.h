// The `model` Unigram of a tokenizer.json (SentencePiece): of all ways to cut a word into pieces the one whose scores
// have the greatest sum, by Viterbi's algorithm.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "braid/models/data/tokenizers/section.h"
#include "braid/models/data/tokenizers/word_cache.h"

namespace braid::models::text {

class Unigram {
 public:
  // Working memory of encode(); one thread at a time.
  struct Scratch {
    struct Node {
      int32_t id;
      size_t begin;  // of the last piece
      double score;
    };
    struct Piece {
      size_t begin, end;
      int32_t id;
    };
    WordCache cache;
    std::vector<Node> best;  // by byte: the best path that ends there
    std::vector<Piece> pieces;
    int64_t steps = 0;  // pieces compared, for tests
  };

  Unigram(const Section& section, bool byte_level);  // the object `model`; byte_level is rejected

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t id_limit() const { return size(); }
  int32_t id_of(std::string_view token) const;
  const std::string* token(int32_t id) const;

  // Appends the ids of a word, in time linear in its length. Unknown characters side by side are one piece: an entry of
  // the vocabulary, else its bytes where byte_fallback has all of them, else the unknown token.
  void encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;

 private:
  using Places = std::pair<size_t, size_t>;  // of sorted_
  void cut(std::string_view word, Scratch& scratch) const;
  template <class Action>
  void each_prefix(std::string_view text, Scratch& scratch, const Action& action) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<std::string> tokens_;  // by id
  std::vector<double> scores_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::vector<int32_t> sorted_;         // the ids, by their texts
  std::array<Places, 256> first_ = {};  // by first byte
  std::vector<int32_t> bytes_;          // <0x00> ... <0xFF>, -1: not there; empty: no byte_fallback
  double unk_score_ = 0;
  int32_t unk_ = -1;
};

}  // namespace braid::models::text
