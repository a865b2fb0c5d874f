// Matrix products on the card.
#pragma once
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda {

// y = alpha x z + beta y, x (..., M, K), z (..., K, N), y (..., M, N) with equal batch axes.
// Batch axes may have any strides (0 repeats). Of the last two axes of each tensor one has stride 1, either of them.
// x and z have one dtype; y has the same, or f32 where theirs has 16 bits. Sums are f32, f64 for f64.
void product(In x, In z, double alpha, double beta, Out y);

// As in the contract of Backend::linear.
void linear(In x, In weight, In bias, Out y);

}  // namespace braid::cuda
