// How the entries of one axis are dealt out to ranks. Every mesh of Braid is said with this one type: heads, FFN
// columns and the vocabulary in runs of about equal length, sequences in two runs per rank (see zigzag_partition).
#pragma once
#include <cstdint>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::dist {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};
using Ranges = std::vector<Range>;  // ascending, without overlap; empty ones are allowed

struct Partition {
  std::vector<Ranges> of;  // one list per rank; together they cover [0, total()) once

  int ranks() const { return static_cast<int>(of.size()); }
  int64_t size(int rank) const;  // entries of one rank
  int64_t total() const;
  // Where parts overlap, an entry counts in total() once per rank; extent() is the length of the axis they cover.
  int64_t extent() const;
};

// Runs of n / ranks entries, the first n % ranks one longer. Ranks may get nothing.
Partition even_partition(int64_t n, int ranks);

// For causal attention, where late queries see more keys: [0, n) is cut into 2 x ranks runs, rank r gets the r-th and
// the r-th from the end, so that all ranks have about the same number of visible pairs.
Partition zigzag_partition(int64_t n, int ranks);

// zigzag_partition of the entries that `rank` of `whole` holds, counted from 0 in their order. For whole =
// zigzag_partition(n, P) the two steps together deal out as zigzag_partition(n, P x ranks) does (up to rounding).
Partition zigzag_partition_within(const Partition& whole, int rank, int ranks);

// Each entry of p stands for `times` consecutive ones (heads -> rows of a weight).
Partition widened(const Partition& p, int64_t times);
// `copies` blocks, one after the other, each dealt out like p (queries | keys | values).
Partition stacked(const Partition& p, int copies);

// Where `inner` entries, counted within `outer`, stand in the numbering of outer.
Ranges within(const Ranges& outer, const Ranges& inner);

// The entries in both lists; where the entries of a part of `outer` stand, counted within outer (the inverse of
// within); the union, with neighbours joined.
Ranges overlap(const Ranges& a, const Ranges& b);
Ranges places_in(const Ranges& outer, const Ranges& part);
Ranges joined(const Ranges& list);    // ascending by begin
int64_t entries(const Ranges& list);  // how many

// The listed entries of an axis, one after the other, as a contiguous copy; and back into their places. Raw, without
// history.
Tensor take(const Tensor& whole, int axis, const Ranges& list);
void put(const Tensor& part, int axis, const Ranges& list, Tensor& whole);

// Numbers that stand together in a whole tensor and in a rank's part of it.
struct Span {
  int64_t whole, part, count;  // first number in the flattened whole and in the part; how many
  friend bool operator==(const Span&, const Span&) = default;
};
// The numbers `flat` of what take(whole, axis, list) gives, flattened; `part` counts from flat.begin.
std::vector<Span> spans_of(const Shape& whole, int axis, const Ranges& list, Range flat);

}  // namespace braid::dist
