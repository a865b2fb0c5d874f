#include "braid/autograd/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/windows.h"

namespace braid {

namespace {

using detail::Windows;

Windows pool_windows(const char* op, const Tensor& x, const Pixels& kernel, const Pool2dOptions& o) {
  check_float(op, x);
  check(x.rank() == 4, op, [&] { return str("images must be (B, C, H, W), got ", x.shape()); });
  check(2 * o.padding.rows <= kernel.rows && 2 * o.padding.columns <= kernel.columns, op, [&] {
    return str("the padding must be at most half a window, got ", o.padding.rows, " x ", o.padding.columns, " for ",
               kernel.rows, " x ", kernel.columns);
  });
  check(o.stride.rows >= 0 && o.stride.columns >= 0, op, "a stride must be at least 1, or 0 for the size of a window");
  return detail::windows_of({x.dim(2), x.dim(3)}, kernel,
                            {.stride = {o.stride.rows == 0 ? kernel.rows : o.stride.rows,
                                        o.stride.columns == 0 ? kernel.columns : o.stride.columns},
                             .padding = o.padding,
                             .dilation = o.dilation});
}

// (B, C, k, Ph, Pw), -inf for padding.
Tensor candidates(const Tensor& x, const Windows& w) {
  const Tensor u = detail::columns(x, w, -std::numeric_limits<double>::infinity());
  return reshape(u, {x.dim(0), x.dim(1), w.size(), w.count.rows, w.count.columns});
}

// How many pixels of the image each window has, (Ph, Pw).
Tensor pixel_counts(const Windows& w, DType dtype, Device device) {
  const Tensor ones_ = ones({1, 1, w.image.rows, w.image.columns}, dtype, device);
  return reshape(sum(detail::columns(ones_, w), {2, 3}), {w.count.rows, w.count.columns});
}

Tensor image_row(const char* op, const Tensor& x) {
  check(x.rank() == 3, op, [&] { return str("sequences must be (B, C, L), got ", x.shape()); });
  return unsqueeze(x, 2);
}

Pool2dOptions of_rows(const Pool1dOptions& o) {
  return {.stride = {0, o.stride},
          .padding = {0, o.padding},
          .dilation = {1, o.dilation},
          .count_include_pad = o.count_include_pad};
}

// The means along an axis, of `size` intervals of it.
Tensor interval_means(const Tensor& x, int axis, int64_t size) {
  const int64_t n = x.dim(axis);
  check(size >= 1 && n >= 1, "adaptive_avg_pool2d",
        [&] { return str("needs at least one pixel and one result of each axis, got ", n, " and ", size); });
  if (size == n) return x;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < size; ++i)
    parts.push_back(mean(slice(x, axis, i * n / size, ((i + 1) * n + size - 1) / size), {axis}, true));
  return concat(parts, axis);
}

// The type in which resized() computes: where it only copies, that of x.
DType resized_type(const Tensor& x, const InterpolateOptions& o) {
  return o.mode == Interpolation::nearest ? x.dtype() : accumulate_type(x.dtype());
}

// x at `ids` (size) of an axis.
Tensor select_along(const Tensor& x, int axis, const Tensor& ids) {
  return transpose(index_select(transpose(x, 0, axis), ids), 0, axis);
}

Tensor resized(const Tensor& x, int axis, int64_t size, const InterpolateOptions& o) {
  const int64_t n = x.dim(axis);
  check(n >= 1 && size >= 1, "interpolate",
        [&] { return str("needs at least one pixel and one result of each axis, got ", n, " and ", size); });
  if (n == size) return x;
  std::vector<int64_t> first, second;
  std::vector<double> weight;
  for (int64_t i = 0; i < size; ++i) {
    if (o.mode == Interpolation::nearest) {
      first.push_back(i * n / size);
      continue;
    }
    const auto at = static_cast<double>(i), from = static_cast<double>(n), to = static_cast<double>(size);
    const double place = !o.align_corners ? std::fmax((at + 0.5) * from / to - 0.5, 0)
                         : size == 1      ? 0.0
                                          : at * (from - 1) / (to - 1);
    const int64_t low = std::min(static_cast<int64_t>(place), n - 1);
    first.push_back(low);
    second.push_back(std::min(low + 1, n - 1));
    weight.push_back(std::fmin(place - static_cast<double>(low), 1));
  }
  Tensor a = select_along(x, axis, from_vector(first, {size}, x.device()));
  if (o.mode == Interpolation::nearest) return a;
  const Tensor b = select_along(x, axis, from_vector(second, {size}, x.device()));
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) shape.push_back(i == axis ? size : 1);
  const Tensor w = from_vector(weight, shape, x.device()).to(x.dtype());
  return add(a, mul(sub(b, a), w));
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pixels& kernel, const Pool2dOptions& o) {
  const CalledOp called("max_pool2d");
  return max(candidates(x, pool_windows("max_pool2d", x, kernel, o)), 2);
}

ValuesAndIndices max_pool2d_with_indices(const Tensor& x, const Pixels& kernel, const Pool2dOptions& o) {
  const CalledOp called("max_pool2d_with_indices");
  const Windows w = pool_windows("max_pool2d_with_indices", x, kernel, o);
  const Tensor u = candidates(x, w);
  const Shape result{x.dim(0), x.dim(1), w.count.rows, w.count.columns}, flat{x.dim(0), x.dim(1), w.number()};
  const Tensor places =
      window_pixels(w.image, kernel, {.stride = w.stride, .padding = o.padding, .dilation = o.dilation})
          .to(x.device());  // (P, k)
  Tensor largest = argmax(permute(u.detach(), {0, 1, 3, 4, 2}));
  Tensor at = gather(expand(places, {x.dim(0), x.dim(1), w.number(), w.size()}), reshape(largest, flat));
  return {max(u, 2), reshape(at, result)};
}

Tensor avg_pool2d(const Tensor& x, const Pixels& kernel, const Pool2dOptions& o) {
  const CalledOp called("avg_pool2d");
  check(o.dilation.rows == 1 && o.dilation.columns == 1, "avg_pool2d", "takes no dilation");
  const Windows w = pool_windows("avg_pool2d", x, kernel, o);
  const DType wide = accumulate_type(x.dtype());
  const Tensor total = sum(detail::columns(cast(x, wide), w), {2, 3});  // (B, C, Ph, Pw)
  const bool whole = o.count_include_pad || o.padding.rows + o.padding.columns == 0;
  return cast(whole ? total / static_cast<double>(w.size()) : div(total, pixel_counts(w, wide, x.device())), x.dtype());
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Pixels& size) {
  const CalledOp called("adaptive_avg_pool2d");
  check_float("adaptive_avg_pool2d", x);
  check(x.rank() == 4, "adaptive_avg_pool2d", [&] { return str("images must be (B, C, H, W), got ", x.shape()); });
  return interval_means(interval_means(x, 3, size.columns), 2, size.rows);
}

Tensor max_pool1d(const Tensor& x, int64_t kernel, const Pool1dOptions& o) {
  const CalledOp called("max_pool1d");
  return squeeze(max_pool2d(image_row("max_pool1d", x), {1, kernel}, of_rows(o)), 2);
}

ValuesAndIndices max_pool1d_with_indices(const Tensor& x, int64_t kernel, const Pool1dOptions& o) {
  const CalledOp called("max_pool1d_with_indices");
  const ValuesAndIndices y = max_pool2d_with_indices(image_row("max_pool1d_with_indices", x), {1, kernel}, of_rows(o));
  return {squeeze(y.values, 2), squeeze(y.indices, 2)};
}

Tensor avg_pool1d(const Tensor& x, int64_t kernel, const Pool1dOptions& o) {
  const CalledOp called("avg_pool1d");
  return squeeze(avg_pool2d(image_row("avg_pool1d", x), {1, kernel}, of_rows(o)), 2);
}

Tensor adaptive_avg_pool1d(const Tensor& x, int64_t size) {
  const CalledOp called("adaptive_avg_pool1d");
  return squeeze(adaptive_avg_pool2d(image_row("adaptive_avg_pool1d", x), {1, size}), 2);
}

Tensor interpolate(const Tensor& x, const Pixels& size, const InterpolateOptions& o) {
  const CalledOp called("interpolate");
  check_float("interpolate", x);
  check(x.rank() == 4, "interpolate", [&] { return str("images must be (B, C, H, W), got ", x.shape()); });
  const Tensor values = cast(x, resized_type(x, o));
  return cast(resized(resized(values, 3, size.columns, o), 2, size.rows, o), x.dtype());
}

Tensor interpolate(const Tensor& x, int64_t size, const InterpolateOptions& o) {
  const CalledOp called("interpolate");
  check_float("interpolate", x);
  return cast(squeeze(resized(image_row("interpolate", cast(x, resized_type(x, o))), 3, size, o), 2), x.dtype());
}

}  // namespace braid
