// How the entries of one axis are partitioned over ranks: heads, hidden units and the vocabulary in one range per rank,
// sequences in two (zigzag_partition). Every distribution of data in Braid is described by this type.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::dist {

// Entries begin, ..., end - 1.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};
using Ranges = std::vector<Range>;  // ascending, without overlap; empty ranges are allowed

// The ranges of every rank. Together they cover [0, total()) once, unless a function says that they may overlap (the
// keys that ranks need).
struct Partition {
  std::vector<Ranges> ranges;  // per rank

  int ranks() const { return static_cast<int>(ranges.size()); }
  const Ranges& of(int rank) const { return ranges.at(static_cast<size_t>(rank)); }
  Range single(int rank) const { return of(rank).at(0); }  // of a partition with one range per rank
  int64_t size(int rank) const;                            // entries of one rank
  int64_t total() const;                                   // of all ranks; an entry of two ranks counts twice
  int64_t extent() const;                                  // length of the axis; an entry of two ranks counts once
  friend bool operator==(const Partition&, const Partition&) = default;
};

// One range per rank of n / ranks entries, the first n % ranks ranges one entry longer. Ranks may get nothing.
//   5 over 2:  [0 3) [3 5)
Partition even_partition(int64_t n, int ranks);

// For causal attention, where later queries have more keys: [0, n) is cut into 2 x ranks ranges, and rank r gets the
// r-th from the start and the r-th from the end, so that all ranks have about the same number of (query, key) pairs.
//   8 over 2:  [0 2) [6 8) | [2 4) [4 6)
Partition zigzag_partition(int64_t n, int ranks);

// zigzag_partition of the entries of `rank` in `outer`, counted from 0 in their order. For outer = zigzag_partition(n,
// P) the two steps together give zigzag_partition(n, P x ranks), up to rounding.
Partition zigzag_partition_within(const Partition& outer, int rank, int ranks);

// Each entry of p stands for `times` consecutive entries (heads -> rows of a weight).
//   [0 2) | [2 3)  times 4  ->  [0 8) | [8 12)
Partition scale_partition(const Partition& p, int64_t times);
// The entries of q after those of p (queries | keys): [0 2) | [2 3) and [0 1) | none  ->  [0 2) [3 4) | [2 3)
Partition append_partition(const Partition& p, const Partition& q);

// Ranges as index lists. outer {[2 4) [8 11)} stands for the indices 2 3 8 9 10.
//   index_ranges(outer, {[1 4)})  = {[3 4) [8 10)}        outer[1], outer[2], outer[3]
//   locate(outer, {[3 4) [8 10)}) = {[1 2) [2 4)}         their indices in outer: the inverse
Ranges index_ranges(const Ranges& outer, const Ranges& inner);
Ranges locate(const Ranges& outer, const Ranges& part);
Ranges intersect(const Ranges& a, const Ranges& b);  // entries of both
Ranges merge(const Ranges& list);                    // adjacent and overlapping ranges joined; ascending by begin
int64_t entries(const Ranges& list);                 // number of entries

// The listed entries of an axis, one after the other, as a contiguous copy; and back into their places. Raw: without
// history.
Tensor gather_ranges(const Tensor& full, int axis, const Ranges& list);
void scatter_ranges(const Tensor& part, int axis, const Ranges& list, Tensor& full);

// Elements that are adjacent in a tensor and in a rank's shard of it, both flattened.
struct Span {
  int64_t full, local, count;  // index of the first element in the tensor and in the shard; number of elements
  friend bool operator==(const Span&, const Span&) = default;
};
// The elements `flat` of gather_ranges(full, axis, list), flattened; `local` counts from flat.begin.
std::vector<Span> spans_of(const Shape& full, int axis, const Ranges& list, Range flat);

}  // namespace braid::dist
