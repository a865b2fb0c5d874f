// Convolution over images and sequences, with derivatives of every order. On the CPU by kernels of its own where they
// are faster (tensor/kernels/convolution.h), otherwise the windows of an image as columns, times the kernels as a
// matrix, in blocks of images whose columns stay in the cache.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

// Sizes and steps in pixels, vertically and horizontally.
struct Pixels {
  int64_t rows = 1, columns = 1;
};
struct Conv2dOptions {
  Pixels stride = {1, 1};
  Pixels padding = {0, 0};   // zeros on each side
  Pixels dilation = {1, 1};  // distance of the pixels of a window
  int64_t groups = 1;        // group g of the outputs reads group g of the channels
  // As much padding as keeps the size: d (k - 1) zeros, an odd one of them behind. Needs stride 1; `padding` is not
  // read.
  bool same = false;
};
struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool same = false;
};
struct ConvTranspose2dOptions {
  Pixels stride = {1, 1};
  Pixels padding = {0, 0};         // rows and columns left out on each side of the result
  Pixels output_padding = {0, 0};  // added behind to the size of the result; less than the stride
  Pixels dilation = {1, 1};
  int64_t groups = 1;
};
struct ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};

// The windows of x (B, C, H, W) from left to right, then downwards, as rows (B, P, C kernel.rows kernel.columns): P =
// Ph Pw, Ph = (H + 2 padding.rows - dilation.rows (kernel.rows - 1) - 1) / stride.rows + 1, rounded down. A window's
// elements are ordered by channel, row, column. options.groups is not read.
Tensor unfold(const Tensor& x, const Pixels& kernel, const Conv2dOptions& options = {});
// Its adjoint: rows (B, P, C kernel.rows kernel.columns) -> (B, C, image.rows, image.columns), every pixel the sum of
// the elements of windows that lie on it.
Tensor fold(const Tensor& rows, const Pixels& image, const Pixels& kernel, const Conv2dOptions& options = {});
// The indices of the pixels of those windows, i64 (P, kernel.rows kernel.columns), in an image of `image` pixels: row W
// + column, or H W for padding. For layers that look up the same windows in every batch.
Tensor window_pixels(const Pixels& image, const Pixels& kernel, const Conv2dOptions& options = {});

// y[b, o, i, j] = bias[o] + sum_{c, u, v} weight[o, c, u, v] x[b, c, i stride + u dilation - padding, j ...], the sum
// over the channels c of the group of o. x (B, C, H, W), weight (O, C / groups, kh, kw), bias (O) or an empty handle ->
// (B, O, Ph, Pw).
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
// x (B, C, L), weight (O, C / groups, k), bias (O) or an empty handle -> (B, O, P).
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});
// The adjoint of conv2d in x, plus bias: x (B, C, H, W), weight (C, O / groups, kh, kw), bias (O) or an empty handle ->
// (B, O, Y, X), Y = (H - 1) stride.rows - 2 padding.rows + dilation.rows (kh - 1) + output_padding.rows + 1.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});
// x (B, C, L), weight (C, O / groups, k), bias (O) or an empty handle.
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});

}  // namespace braid
