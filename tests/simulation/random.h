// The choices of a history: a pure function of its seed (splitmix64).
#pragma once
#include <cstdint>

namespace braid::simulation {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return next() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  double seconds(double max) { return max * static_cast<double>(below(1 << 20)) / (1 << 20); }  // [0, max)
  template <class List>
  auto any_of(const List& list) {
    return list.begin()[below(list.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace braid::simulation
