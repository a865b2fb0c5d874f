// Pooling and interpolation of images (B, C, H, W), composed of other ops. The functions for sequences take (B, C, L).
#pragma once
#include "braid/autograd/convolution.h"

namespace braid {

struct Pool2dOptions {
  Pixels stride = {0, 0};  // 0: the size of a window
  Pixels padding = {0, 0};
  Pixels dilation = {1, 1};       // of max pooling
  bool count_include_pad = true;  // of average pooling: zeros of the padding count in the mean
};
struct Pool1dOptions {
  int64_t stride = 0, padding = 0, dilation = 1;
  bool count_include_pad = true;
};

// The largest element of each window -> (B, C, Ph, Pw), sizes as unfold()'s. Padding is never the largest; it is at
// most half a window. Ties: the first one gets the gradient. NaN is above every number.
Tensor max_pool2d(const Tensor& x, const Pixels& kernel, const Pool2dOptions& options = {});
Tensor max_pool1d(const Tensor& x, int64_t kernel, const Pool1dOptions& options = {});
// The same with the place of each, i64 (B, C, Ph, Pw), row W + column; in a window of -inf alone that of its first
// element, which is H W where that is padding.
ValuesAndIndices max_pool2d_with_indices(const Tensor& x, const Pixels& kernel, const Pool2dOptions& options = {});
ValuesAndIndices max_pool1d_with_indices(const Tensor& x, int64_t kernel, const Pool1dOptions& options = {});
// The mean of each window -> (B, C, Ph, Pw).
Tensor avg_pool2d(const Tensor& x, const Pixels& kernel, const Pool2dOptions& options = {});
Tensor avg_pool1d(const Tensor& x, int64_t kernel, const Pool1dOptions& options = {});
// (B, C, size.rows, size.columns): entry i of an axis is the mean of the pixels from i n / size, rounded down, to
// (i + 1) n / size, rounded up.
Tensor adaptive_avg_pool2d(const Tensor& x, const Pixels& size);
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t size);

enum class Interpolation : uint8_t {
  nearest,  // pixel i n / size, rounded down
  linear,   // between the two nearest pixels of each axis: bilinear for images
};
struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  // For linear: the outer pixels' centres stay where they are, pixel i reads i (n - 1) / (size - 1). Otherwise their
  // borders do: it reads (i + 1/2) n / size - 1/2, at least 0.
  bool align_corners = false;
};
// (B, C, H, W) -> (B, C, size.rows, size.columns).
Tensor interpolate(const Tensor& x, const Pixels& size, const InterpolateOptions& options = {});
// (B, C, L) -> (B, C, size).
Tensor interpolate(const Tensor& x, int64_t size, const InterpolateOptions& options = {});

}  // namespace braid
