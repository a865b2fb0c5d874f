// Pooling and interpolation as layers, for Sequential: each holds its options alone.
#pragma once
#include "braid/autograd/pooling.h"

namespace braid::nn {

struct MaxPool2d {
  Pixels kernel;
  Pool2dOptions options = {};
  Tensor operator()(const Tensor& x) const { return max_pool2d(x, kernel, options); }
};
struct MaxPool1d {
  int64_t kernel;
  Pool1dOptions options = {};
  Tensor operator()(const Tensor& x) const { return max_pool1d(x, kernel, options); }
};
struct AvgPool2d {
  Pixels kernel;
  Pool2dOptions options = {};
  Tensor operator()(const Tensor& x) const { return avg_pool2d(x, kernel, options); }
};
struct AvgPool1d {
  int64_t kernel;
  Pool1dOptions options = {};
  Tensor operator()(const Tensor& x) const { return avg_pool1d(x, kernel, options); }
};
struct AdaptiveAvgPool2d {
  Pixels size;
  Tensor operator()(const Tensor& x) const { return adaptive_avg_pool2d(x, size); }
};
struct Upsample2d {
  Pixels size;
  InterpolateOptions options = {};
  Tensor operator()(const Tensor& x) const { return interpolate(x, size, options); }
};
// (B, ...) -> (B, the product of the other sizes)
struct Flatten {
  Tensor operator()(const Tensor& x) const {
    check(x.rank() >= 1, "flatten", "needs an axis of samples, got a scalar");
    int64_t width = 1;
    for (int a = 1; a < x.rank(); ++a) width *= x.dim(a);
    return reshape(x, {x.dim(0), width});
  }
};

}  // namespace braid::nn
