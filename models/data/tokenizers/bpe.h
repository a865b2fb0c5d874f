// The `model` of a tokenizer.json: byte pair encoding of words.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/models/data/tokenizers/section.h"
#include "braid/models/data/tokenizers/word_cache.h"

namespace braid::models::text {

class Bpe {
 public:
  static constexpr int64_t max_id = (1 << 22) - 1;

  // Working memory of encode(); one thread at a time.
  struct Scratch {
    struct Symbol {
      int32_t id, previous, next;
    };
    struct Candidate {
      uint32_t rank, position;
      int32_t result;
    };
    WordCache cache;
    std::vector<int32_t> symbols;
    std::vector<uint32_t> ranks;
    std::vector<Symbol> list;
    std::vector<Candidate> queue;
    std::string text;
    int64_t steps = 0;  // merges looked up and comparisons in the queue, for tests
  };

  // The object `model`. byte_level: words come as bytes, whose characters are those of the byte-level alphabet.
  Bpe(const Section& section, bool byte_level);

  // Entries of the vocabulary, without added tokens, and 1 + the largest id.
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  int64_t id_limit() const { return static_cast<int64_t>(tokens_.size()); }
  int32_t id_of(std::string_view token) const;  // -1: none
  const std::string* token(int32_t id) const;   // null: no token has this id

  // Appends the ids of a word, in O(n log n), and in O(n) where the merges of one rank arise from left to right, as in
  // a run of one character; words met before are looked up.
  void encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;

 private:
  struct Merge {
    uint64_t pair;  // left id, right id; all ones: a free place
    uint32_t rank;
    int32_t result;
  };
  void read_vocabulary(const Section& section);
  void read_merges(const Section& section);
  void find_cut();
  void encode_cached(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;
  void encode_word(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;
  void start_symbols(std::string_view word, std::vector<int32_t>& symbols, std::string& buffer) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;
  const Merge* merge(int32_t left, int32_t right) const;
  Merge& place(uint64_t pair);

  std::vector<std::unique_ptr<std::string>> tokens_;  // by id
  std::unordered_map<std::string_view, int32_t> ids_;
  std::vector<Merge> merges_;          // open addressing; the size is a power of two
  int shift_ = 63;                     // 64 - log2 of that size
  std::vector<int32_t> byte_ids_;      // byte-level: the symbol of each byte, -1: none
  std::vector<int32_t> fallback_ids_;  // <0x00> .. <0xFF>, -1: not there
  std::string prefix_, suffix_, cut_;
  int32_t unk_ = -1;
  bool byte_level_, fuse_unk_, byte_fallback_, ignore_merges_;
};

}  // namespace braid::models::text
