// Packing of samples of different lengths into sequences of one length: which samples share a sequence. A sample is
// never cut in two.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid::models::text {

enum class Packing : uint8_t {
  first_fit,  // each sample, in order, goes into the first sequence that has room
  in_order,   // into the last sequence, else it begins the next one
  none,       // every sample has a sequence of its own
};
inline constexpr const char* packing_names[] = {"first_fit", "in_order", "none"};  // in the order of the enumeration
Packing parse_packing(const std::string& name);

// Sequence i holds the samples order[starts[i]] ... order[starts[i + 1] - 1], ascending.
struct PackedSequences {
  std::vector<int64_t> order, starts;
  int64_t size() const { return static_cast<int64_t>(starts.size()) - 1; }
  std::span<const int64_t> of(int64_t i) const {
    const auto begin = static_cast<size_t>(starts[static_cast<size_t>(i)]),
               end = static_cast<size_t>(starts[static_cast<size_t>(i) + 1]);
    return std::span(order).subspan(begin, end - begin);
  }
};

// lengths: of the samples, at least 1. Samples longer than `capacity` are skipped. A pure function of its arguments;
// first_fit takes O(n log n).
PackedSequences pack(std::span<const int64_t> lengths, int64_t capacity, Packing packing);

}  // namespace braid::models::text
