#include "braid/models/data/text/packing.h"

#include <algorithm>
#include <bit>

#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

// Free positions of sequences as a tree of maxima: the first sequence with enough of them is found in O(log n).
// Sequences that no sample has reached yet are empty.
class FreePositions {
 public:
  FreePositions(size_t sequences, int64_t capacity)
      : leaves_(std::bit_ceil(std::max<size_t>(sequences, 1))), max_(2 * leaves_, capacity) {}

  // Takes `length` from the first sequence that has it, and returns its number.
  size_t take(int64_t length) {
    size_t node = 1;
    while (node < leaves_) node = 2 * node + (max_[2 * node] < length);
    const size_t sequence = node - leaves_;
    max_[node] -= length;
    while (node /= 2) max_[node] = std::max(max_[2 * node], max_[2 * node + 1]);
    return sequence;
  }

 private:
  size_t leaves_;
  std::vector<int64_t> max_;
};

}  // namespace

Packing parse_packing(const std::string& name) {
  const auto at = std::find(std::begin(packing_names), std::end(packing_names), name);
  check(at != std::end(packing_names), "packing", [&] { return "there is no packing '" + name + "'"; });
  return static_cast<Packing>(at - std::begin(packing_names));
}

PackedSequences pack(std::span<const int64_t> lengths, int64_t capacity, Packing packing) {
  struct Slot {
    size_t sequence;
    int64_t sample;
  };
  std::vector<Slot> slots;
  FreePositions free(packing == Packing::first_fit ? lengths.size() : 0, capacity);
  size_t sequences = 0;
  int64_t left = 0;  // of the last sequence
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t length = lengths[i];
    check(length >= 1, "pack", [&] { return str("sample ", i, " has length ", length); });
    if (length > capacity) continue;
    size_t to = 0;
    if (packing == Packing::first_fit) {
      to = free.take(length);
    } else {
      const bool fits = packing == Packing::in_order && sequences > 0 && length <= left;
      to = fits ? sequences - 1 : sequences;
      left = (fits ? left : capacity) - length;
    }
    sequences = std::max(sequences, to + 1);
    slots.push_back({to, static_cast<int64_t>(i)});
  }
  std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.sequence < b.sequence; });
  PackedSequences packed;
  for (const Slot& slot : slots) {
    while (packed.starts.size() <= slot.sequence) packed.starts.push_back(std::ssize(packed.order));
    packed.order.push_back(slot.sample);
  }
  packed.starts.push_back(std::ssize(packed.order));
  return packed;
}

}  // namespace braid::models::text
