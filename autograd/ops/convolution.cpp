#include "braid/autograd/convolution.h"

#include <vector>

#include "braid/autograd/detail/check.h"

namespace braid {

namespace {

// Windows along one axis of n pixels.
int64_t windows(int64_t n, int64_t kernel, int64_t stride, int64_t padding) {
  check(kernel >= 1 && stride >= 1 && padding >= 0 && kernel <= n + 2 * padding, "unfold", [&] {
    return str("a window of ", kernel, " pixels, moved by ", stride, ", must fit into ", n, " pixels with ", padding,
               " zeros on each side");
  });
  return (n + 2 * padding - kernel) / stride + 1;
}

// Windows that tile the image: axes are split and exchanged, nothing is looked up.
Tensor tiles(const Tensor& x, const Pixels& k, int64_t Ph, int64_t Pw) {
  const int64_t B = x.dim(0), C = x.dim(1);
  const Tensor parts = reshape(x, {B, C, Ph, k.rows, Pw, k.columns});
  return reshape(permute(parts, {0, 2, 4, 1, 3, 5}), {B, Ph * Pw, C * k.rows * k.columns});
}

}  // namespace

Tensor unfold(const Tensor& x, const Pixels& k, const Conv2dOptions& o) {
  const CalledOp called("unfold");
  check_float("unfold", x);
  check(x.rank() == 4, "unfold", [&] { return str("images must be (B, C, H, W), got ", x.shape()); });
  const int64_t B = x.dim(0), C = x.dim(1), H = x.dim(2), W = x.dim(3);
  const int64_t Ph = windows(H, k.rows, o.stride.rows, o.padding.rows);
  const int64_t Pw = windows(W, k.columns, o.stride.columns, o.padding.columns);
  if (Ph * k.rows == H && Pw * k.columns == W && (o.stride.rows == k.rows || Ph == 1) &&
      (o.stride.columns == k.columns || Pw == 1))
    return tiles(x, k, Ph, Pw);
  // The pixels as rows of a table, whose last row is the padding; each window looks up its own.
  const Tensor pixels = reshape(permute(x, {2, 3, 0, 1}), {H * W, B, C});
  const Tensor table = concat({pixels, zeros({1, B, C}, x.dtype(), x.device())}, 0);
  const Tensor seen = index_select(table, window_pixels({H, W}, k, o).to(x.device()));  // (P, kh kw, B, C)
  return reshape(permute(seen, {2, 0, 3, 1}), {B, Ph * Pw, C * k.rows * k.columns});
}

Tensor window_pixels(const Pixels& image, const Pixels& k, const Conv2dOptions& o) {
  const CalledOp called("window_pixels");
  const int64_t H = image.rows, W = image.columns;
  const int64_t Ph = windows(H, k.rows, o.stride.rows, o.padding.rows);
  const int64_t Pw = windows(W, k.columns, o.stride.columns, o.padding.columns);
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(Ph * Pw * k.rows * k.columns));
  for (int64_t i = 0; i < Ph; ++i)
    for (int64_t j = 0; j < Pw; ++j)
      for (int64_t u = 0; u < k.rows; ++u)
        for (int64_t v = 0; v < k.columns; ++v) {
          const int64_t row = i * o.stride.rows + u - o.padding.rows;
          const int64_t column = j * o.stride.columns + v - o.padding.columns;
          const bool inside = row >= 0 && row < H && column >= 0 && column < W;
          ids.push_back(inside ? row * W + column : H * W);
        }
  return from_vector(ids, {Ph * Pw, k.rows * k.columns});
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o) {
  const CalledOp called("conv2d");
  check(weight.rank() == 4 && x.rank() == 4 && weight.dim(1) == x.dim(1), "conv2d", [&] {
    return str("images (B, C, H, W) need kernels (O, C, kh, kw), got ", x.shape(), " and ", weight.shape());
  });
  const int64_t O = weight.dim(0), Ph = windows(x.dim(2), weight.dim(2), o.stride.rows, o.padding.rows);
  const Tensor rows = unfold(x, {weight.dim(2), weight.dim(3)}, o);        // (B, P, C kh kw)
  const Tensor y = linear(rows, reshape(weight, {O, rows.dim(2)}), bias);  // (B, P, O)
  return reshape(transpose(y), {x.dim(0), O, Ph, Ph == 0 ? 0 : rows.dim(1) / Ph});
}

}  // namespace braid
