// The order in which samples are read: every sample once per epoch, in an order that is a pure function of
// (seed, epoch, position). Nothing is stored, so resuming, or sharing the work among processes, needs only an integer.
#pragma once
#include <cstdint>

namespace braid::models::text {

// The index that a keyed bijection of [0, n) assigns to x. 0 <= x < n.
int64_t permuted_index(int64_t n, uint64_t key, int64_t x);

class Sampler {
 public:
  Sampler(int64_t size, uint64_t seed);  // size >= 1 samples
  int64_t size() const { return size_; }
  // The sample at `position` of `epoch`; 0 <= position < size().
  int64_t index(int64_t epoch, int64_t position) const;
  // Sample number `count` of all epochs in sequence.
  int64_t at(int64_t count) const { return index(count / size_, count % size_); }

 private:
  int64_t size_;
  uint64_t seed_;
};

}  // namespace braid::models::text
