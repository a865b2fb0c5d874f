// Rounding of f32 to one of its two neighbours in bf16, at random: to the upper one of x with probability
// (x - lower) / (upper - lower). The mean is x, so weights of 16 bits follow updates that are smaller than their
// spacing, without f32 masters.
//
// Element i draws 16 bits, half i % 2 of random_bits(i / 2, key): the same in every layout, on any number of threads
// and with every instruction set.
#pragma once
#include <vector>

#include "braid/tensor/random.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

// random: uniform, below 2^16. What is exact stays, as do NaN and infinities; nothing finite becomes infinite.
bfloat16 rounded_at_random(float x, uint32_t random);

// Elements that are adjacent in a parameter and in a part of it, both flattened.
struct ElementSpan {
  int64_t full, local, count;
};

// to[begin + i] = x[i], rounded, for all i. to: bf16, a part of a parameter with these spans; none: the parameter
// itself. x: f32. Both contiguous, on the CPU.
void round_at_random(const Tensor& x, RandomKey key, const std::vector<ElementSpan>& spans, int64_t begin, Tensor to);

}  // namespace braid::nn
