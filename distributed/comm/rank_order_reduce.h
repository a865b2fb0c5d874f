// Sums over ranks, formed in rank order; 16-bit types are summed in f32 and rounded once.
#pragma once
#include "braid/distributed/sharding/partition.h"

namespace braid::dist {

enum class Reduction : uint8_t { sum, max };

// The sum or maximum of what the ranks have; a NaN makes both NaN.
Tensor combine(const std::vector<Tensor>& of_ranks, Reduction op);
// Each rank's entries into their places along an axis; where several belong to one place they are summed.
Tensor summed(const std::vector<Tensor>& of_ranks, int axis, const std::vector<Ranges>& places, const Shape& shape);

}  // namespace braid::dist
