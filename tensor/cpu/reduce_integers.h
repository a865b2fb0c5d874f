// The part of the reductions that is for integers.
#pragma once
#include "braid/tensor/kernels/reduce.h"

namespace braid::cpu {

// y: x's rank, size 1 along the reduced axes; i64 for sums and products, else x's type. x is not empty.
void reduce_integers(ReduceOp op, In x, Out y);

}  // namespace braid::cpu
