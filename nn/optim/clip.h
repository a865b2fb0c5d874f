// The size of all gradients together, and what to do when it is too large or not a number.
#pragma once
#include <string>
#include <vector>

#include "braid/nn/module.h"

namespace braid::nn {

// The sum of the squared gradient of each parameter, 0 where none has arrived, into sums (number of parameters), f64,
// on the device of the gradients: nobody waits for it.
void sum_of_squares(const std::vector<NamedTensor>& parameters, Tensor sums);

// sqrt of the sum over all parameters of the squared gradients, accumulated in f64 in the order of the list, so that it
// has the same bits in every run. Parameters without a gradient count as 0. NaN or Inf when a gradient has one.
double global_norm(const std::vector<NamedTensor>& parameters);

// What gradients are multiplied with: limit / norm when norm >= limit, otherwise 1. limit 0 switches clipping off.
double clip_factor(double norm, double limit);

// The name of the first parameter whose gradient holds NaN or Inf (or squares to more than f64 holds); "" when all are
// fine.
std::string first_not_finite(const std::vector<NamedTensor>& parameters);

}  // namespace braid::nn
