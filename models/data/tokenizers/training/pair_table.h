// Pairs of token ids, numbered 0, 1, ... in the order in which they come: a hash table with open addressing.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace braid::models::text {

inline uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
inline int32_t left_of(uint64_t key) { return static_cast<int32_t>(key >> 32); }
inline int32_t right_of(uint64_t key) { return static_cast<int32_t>(key & 0xFFFFFFFF); }

class PairTable {
 public:
  // The number of the pair, a new one when it has none yet.
  int32_t index(uint64_t key) {
    if (keys_.size() * 2 >= slots_.size()) grow();
    for (size_t at = place(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] < 0) {
        slots_[at] = static_cast<int32_t>(keys_.size());
        keys_.push_back(key);
        return slots_[at];
      }
      if (keys_[static_cast<size_t>(slots_[at])] == key) return slots_[at];
    }
  }
  uint64_t key(size_t number) const { return keys_[number]; }
  size_t size() const { return keys_.size(); }

  void clear() {  // in the time of what it holds
    if (keys_.size() * 8 > slots_.size()) {
      slots_.assign(slots_.size(), -1);
    } else {
      for (const uint64_t key : keys_) {
        size_t at = place(key);
        while (slots_[at] >= 0) slots_[at] = -1, at = (at + 1) & (slots_.size() - 1);
      }
    }
    keys_.clear();
  }

 private:
  size_t place(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> (64 - std::bit_width(slots_.size() - 1)));
  }
  void grow() {
    slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, -1);
    for (size_t i = 0; i < keys_.size(); ++i) {
      size_t at = place(keys_[i]);
      while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<int32_t>(i);
    }
  }

  std::vector<uint64_t> keys_;
  std::vector<int32_t> slots_;  // a power of two; -1: free
};

}  // namespace braid::models::text
