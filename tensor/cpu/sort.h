// The part of the order kernels that sorts.
#pragma once
#include "braid/tensor/kernels/order.h"

namespace braid::cpu {

void sort(In x, bool descending, Out values, Out indices);

}  // namespace braid::cpu
