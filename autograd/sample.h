// Random draws. Each is a pure function of its key (tensor/random.h): the same at any thread count, and on every device
// up to the rounding of its logarithms. No draw has a derivative; what shifts and scales one by ops does.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

// --- numbers ---
Tensor uniform(const Shape& shape, double low, double high, RandomKey key, DType dtype = DType::f32,
               Device device = kCpu);  // low <= x < high
Tensor normal(const Shape& shape, double mean, double deviation, RandomKey key, DType dtype = DType::f32,
              Device device = kCpu);
// The normal distribution between low and high; infinite bounds are allowed.
struct TruncatedNormal {
  double mean = 0, deviation = 1;
  double low = -2, high = 2;
};
Tensor truncated_normal(const Shape& shape, const TruncatedNormal& how, RandomKey key, DType dtype = DType::f32,
                        Device device = kCpu);
// Density rate exp(-rate x) for x > 0, and exp(-x - exp(-x)): from one of 2^23 uniform numbers each.
Tensor exponential(const Shape& shape, double rate, RandomKey key, DType dtype = DType::f32, Device device = kCpu);
Tensor gumbel(const Shape& shape, RandomKey key, DType dtype = DType::f32, Device device = kCpu);

// --- integers ---
// low <= x < high, each with the same probability up to (high - low) / 2^64. dtype: an integer type that has them all.
Tensor randint(int64_t low, int64_t high, const Shape& shape, RandomKey key, DType dtype = DType::i64,
               Device device = kCpu);
Tensor randperm(int64_t n, RandomKey key, Device device = kCpu);  // 0 to n - 1 in random order: i64 (n)
Tensor shuffle(const Tensor& x, RandomKey key, int axis = 0);     // the entries of an axis in random order; recorded
// u8, 1 with probability p, which is rounded to a multiple of 2^-23.
Tensor bernoulli(const Shape& shape, double p, RandomKey key, Device device = kCpu);
Tensor bernoulli(const Tensor& p, RandomKey key);  // p (...), one probability per element

// --- choices ---
// Indices along an axis, which is removed, with the probabilities softmax(logits, axis): i64. The index of the largest
// logit + Gumbel noise. A NaN is chosen before every number.
Tensor categorical(const Tensor& logits, RandomKey key, int axis = -1);
// `count` indices in [0, V) for each row of weights (..., V), which are at least 0: i64 (..., count). With replacement
// each is drawn with probabilities weights / sum; without, each by the weights of those that are left. A row needs at
// least one positive weight, or `count` of them. Waits for the device.
Tensor multinomial(const Tensor& weights, int64_t count, RandomKey key, bool replacement = false);

}  // namespace braid
