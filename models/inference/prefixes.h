// Sequences of ended requests, kept for the texts that begin as they do.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "braid/models/inference/sequence_pool.h"

namespace braid::models {

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b);  // tokens

class Prefixes {
 public:
  // most: sequences that are kept, 0: none. The pool must outlive it.
  Prefixes(SequencePool& pool, size_t max_kept) : pool_(pool), max_kept_(max_kept) {}

  // Takes a sequence over; closes it where it is empty or none is kept. tokens: those that it has.
  void keep(int sequence, std::vector<int32_t> tokens);
  // Closes the one that was used least recently; false: there is none.
  bool drop_oldest();
  int64_t size() const { return std::ssize(kept_); }

  struct Live {  // a sequence that is being computed
    int sequence;
    std::span<const int32_t> tokens;
  };
  // A sequence that begins with as much of `text` as kept and live sequences have, at most `limit` tokens: a fork. Of a
  // pool that is not invariant, which may be one that cannot fork, a kept sequence that the text continues is taken
  // over as it is.
  int open(std::span<const int32_t> text, int64_t limit, std::span<const Live> live);
  // The longest common prefix of `text` and any of them, at most `limit`.
  int64_t longest(std::span<const int32_t> text, int64_t limit, std::span<const Live> live) const;

 private:
  struct Kept {
    int sequence;
    std::vector<int32_t> tokens;
  };
  void touch(int sequence);

  SequencePool& pool_;
  size_t max_kept_;
  std::vector<Kept> kept_;  // in the order of use, the last one the latest
};

}  // namespace braid::models
