// How often each word occurs: a hash table that keeps the bytes of all words in one string.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/training/merges.h"

namespace braid::models::text {

class WordCounts {
 public:
  void add(std::string_view word, int64_t count = 1);
  void add(const WordCounts& other);
  size_t size() const { return entries_.size(); }

  // When there are more than `max_words` words: drops the rarest, all of a count or none, until at most three quarters
  // of `max_words` are left (none, when more have the same count). Returns how many it dropped.
  int64_t keep_commonest(size_t max_words);
  // Sorted by the words, so that it does not depend on the order of the calls. Valid until the next change.
  std::vector<CountedWord> sorted() const;
  void clear();

 private:
  struct Entry {
    size_t begin;  // in bytes_
    uint32_t size, hash;
    int64_t count;
  };
  std::string_view text(const Entry& e) const { return std::string_view(bytes_).substr(e.begin, e.size); }
  void add(std::string_view word, uint32_t hash, int64_t count);
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // 1 + number of the entry; 0: free. A power of two.
};

}  // namespace braid::models::text
