// Sums over a step that do not depend on the order of their terms or on the ranks that hold them (tensor/strict.h).
//
// A term is cut into three parts, each a multiple of a power of two that follows from the largest term and the number
// of terms: so coarse that a sum of such parts is exact in f64. Exact sums have no order. What is cut off behind the
// third part is below 2^-60 of the largest term for up to 2^30 terms.
#pragma once
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "braid/nn/module.h"

namespace braid::models {

// Over the ranks' values. Collective. NaN or Inf where a value is.
double exact_sum(const std::vector<double>& values, const dist::Communicator& world);
// Under StrictBits the same; otherwise each rank adds its values in their order. Collective.
double sum_of(const std::vector<double>& values, const dist::Communicator& world);
// The gradients of this rank's pieces and of all other ranks', squared; f32 or f64, on the CPU. Collective.
double exact_sum_of_squares(const std::vector<nn::NamedTensor>& parameters, const dist::Communicator& world);

}  // namespace braid::models
