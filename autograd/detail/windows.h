// The windows of images as columns, and their adjoint: what convolution and pooling are made of.
#pragma once
#include "braid/autograd/convolution.h"

namespace braid::detail {

struct Windows {
  Pixels image, kernel, stride, dilation;
  Pixels before, after;  // padding above and to the left, below and to the right
  Pixels count;          // Ph, Pw
  int64_t size() const { return kernel.rows * kernel.columns; }
  int64_t number() const { return count.rows * count.columns; }
};
// Throws where no window fits. Reads all options but groups.
Windows windows_of(const Pixels& image, const Pixels& kernel, const Conv2dOptions& options);

// x (B, C, H, W) -> (B, C, kh, kw, Ph, Pw): y[b, c, u, v, i, j] = x[b, c, i stride + u dilation - before, ...], or
// `padding` outside of the image. Differentiable.
Tensor columns(const Tensor& x, const Windows& w, double padding = 0);
// Its adjoint: columns (B, C, kh, kw, Ph, Pw) -> (B, C, H, W). Differentiable.
Tensor sum_columns(const Tensor& columns, const Windows& w);

}  // namespace braid::detail
