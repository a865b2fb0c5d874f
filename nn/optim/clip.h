// The global norm of the gradients, gradient clipping, and the search for NaN and Inf.
#pragma once
#include <string>
#include <vector>

#include "braid/nn/module.h"

namespace braid::nn {

// Writes the sum of the squared gradient of each parameter, 0 where none has arrived, to sums (number of parameters),
// f64, on the device of the gradients. The host does not wait for it.
void sum_of_squares(const std::vector<NamedTensor>& parameters, Tensor sums);

// The same for the values of the parameters: NaN or Inf where one contains it. copies: none, or for each parameter its
// copy in a smaller type (MasterWeights::copies_of), which is read instead, or an empty handle; a copy in bf16 or f16
// is NaN or Inf wherever its parameter is.
void sum_of_squared_values(const std::vector<NamedTensor>& parameters, Tensor sums,
                           const std::vector<Tensor>& copies = {});
// The name of the first parameter with NaN or Inf (or a value whose square overflows f64); "" when all are finite.
std::string first_not_finite_value(const std::vector<NamedTensor>& parameters);

// The square root of the sum of all squared gradients, accumulated in f64 in the order of the list, so that it has the
// same bits in every run. Parameters without a gradient count as 0. NaN or Inf when a gradient contains one.
double global_norm(const std::vector<NamedTensor>& parameters);

// The factor that clips the gradients: limit / norm when norm >= limit, otherwise 1. limit 0 switches clipping off.
double clip_factor(double norm, double limit);

// The name of the first parameter whose gradient contains NaN or Inf (or overflows f64 when squared); "" when all are
// finite.
std::string first_not_finite(const std::vector<NamedTensor>& parameters);

}  // namespace braid::nn
