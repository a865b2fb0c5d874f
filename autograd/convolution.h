// Convolution over images, composed of other ops: the windows of an image as rows, times the kernels as a matrix.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

// Sizes and steps in pixels, vertically and horizontally.
struct Pixels {
  int64_t rows = 1, columns = 1;
};
struct Conv2dOptions {
  Pixels stride = {1, 1};
  Pixels padding = {0, 0};  // zeros on each side
};

// The windows of x (B, C, H, W) from left to right, then downwards, as rows (B, P, C kernel.rows kernel.columns): P =
// Ph Pw, Ph = (H + 2 padding.rows - kernel.rows) / stride.rows + 1, rounded down. A window's elements are ordered by
// channel, row, column.
Tensor unfold(const Tensor& x, const Pixels& kernel, const Conv2dOptions& options = {});
// The indices of the pixels of those windows, i64 (P, kernel.rows kernel.columns), in an image of `image` pixels: row W
// + column, or H W for padding. For layers that look up the same windows in every batch.
Tensor window_pixels(const Pixels& image, const Pixels& kernel, const Conv2dOptions& options = {});
// y[b, o, i, j] = bias[o] + sum_{c, u, v} weight[o, c, u, v] x[b, c, i stride + u - padding, j stride + v - padding].
// x (B, C, H, W), weight (O, C, kh, kw), bias (O) or an empty handle -> (B, O, Ph, Pw).
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

}  // namespace braid
