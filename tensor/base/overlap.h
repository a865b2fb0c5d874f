// Whether a view holds an element twice, and whether two views of one buffer share elements in another order: what
// makes the result of a write in place depend on the order of its elements.
#pragma once
#include "braid/tensor/shape.h"

namespace braid::detail {

// The elements of a view in its buffer.
struct Footprint {
  Shape shape;
  Strides strides;
  int64_t offset;  // of the first element, in elements
};

// Two indices with one element: an axis of stride 0, or strides shorter than the axes inside them. Costs a few
// comparisons for every view made of contiguous tensors by slices, permutations and expansions.
bool repeats(const Footprint& x);

// The same elements in the same order. The shapes must be equal.
bool same_elements(const Footprint& x, const Footprint& y);

// Some element belongs to both. Costs a few comparisons unless the ranges of memory intersect; then as much as a copy.
bool overlap(const Footprint& x, const Footprint& y);

}  // namespace braid::detail
