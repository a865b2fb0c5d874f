// Sums of gradients. For autograd/*.cpp only.
#pragma once
#include "braid/autograd/detail/node.h"

namespace braid::detail {

// Adds g to sum, in place when nothing else holds sum's buffer; while recording is on by an op.
void accumulate(Tensor& sum, Tensor g);
// g with memory of its own: copied when it is a view, repeats elements or is held elsewhere.
Tensor own(Tensor g);
// Adds g to the gradient of a leaf, which other threads may do at the same time.
void accumulate_in_leaf(Node& leaf, Tensor g);

}  // namespace braid::detail
