// Sums over ranks, formed in rank order; 16-bit types are summed in f32 and rounded once.
#pragma once
#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// The elementwise sum or maximum of one tensor per rank; NaN gives NaN.
Tensor reduce_in_rank_order(const std::vector<Tensor>& of_ranks, Reduction op);
// A tensor of this shape whose entries places[r] along the axis are those of rank r's tensor; where the places of
// several ranks overlap, the sum.
Tensor sum_into_ranges(const std::vector<Tensor>& of_ranks, int axis, const std::vector<Ranges>& places,
                       const Shape& shape);

}  // namespace braid::dist
