// How the entries of one axis are dealt out to ranks. Every layout of Braid is said with this one type: heads, FFN
// columns and the vocabulary in runs of about equal length, sequences in two runs per rank (see causal_parts).
#pragma once
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace braid::dist {

struct Interval {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
using Intervals = std::vector<Interval>;  // ascending, without overlap; empty ones are allowed

struct Parts {
  std::vector<Intervals> of;  // one list per rank; together they cover [0, total()) once

  int ranks() const { return static_cast<int>(of.size()); }
  int64_t size(int rank) const;  // entries of one rank
  int64_t total() const;
  // Where parts overlap, an entry counts in total() once per rank; extent() is the length of the axis they cover.
  int64_t extent() const;
};

// Runs of n / ranks entries, the first n % ranks one longer. Ranks may get nothing.
Parts even_parts(int64_t n, int ranks);

// For causal attention, where late queries see more keys: [0, n) is cut into 2 x ranks runs, rank r gets the r-th and
// the r-th from the end, so that all ranks have about the same number of visible pairs.
Parts causal_parts(int64_t n, int ranks);

// causal_parts of the entries that `rank` of `whole` holds, counted from 0 in their order. For whole =
// causal_parts(n, P) the two steps together deal out as causal_parts(n, P x ranks) does (up to rounding).
Parts causal_parts_within(const Parts& whole, int rank, int ranks);

// Each entry of p stands for `times` consecutive ones (heads -> rows of a weight).
Parts widened(const Parts& p, int64_t times);
// `copies` blocks, one after the other, each dealt out like p (queries | keys | values).
Parts stacked(const Parts& p, int copies);

// Where `inner` entries, counted within `outer`, stand in the numbering of outer.
Intervals within(const Intervals& outer, const Intervals& inner);

// The entries in both lists; where the entries of a part of `outer` stand, counted within outer (the inverse of
// within); the union, with neighbours joined.
Intervals overlap(const Intervals& a, const Intervals& b);
Intervals places_in(const Intervals& outer, const Intervals& part);
Intervals joined(const Intervals& list);  // ascending by begin
int64_t entries(const Intervals& list);   // how many

// The listed entries of an axis, one after the other, as a contiguous copy; and back into their places. Raw, without
// history.
Tensor take(const Tensor& whole, int axis, const Intervals& list);
void put(const Tensor& part, int axis, const Intervals& list, Tensor& whole);

// Numbers that stand together in a whole tensor and in a rank's part of it.
struct Run {
  int64_t whole, part, count;  // first number in the flattened whole and in the part; how many
  friend bool operator==(const Run&, const Run&) = default;
};
// The numbers `flat` of what take(whole, axis, list) gives, flattened; `part` counts from flat.begin.
std::vector<Run> runs_of(const Shape& whole, int axis, const Intervals& list, Interval flat);

}  // namespace braid::dist
