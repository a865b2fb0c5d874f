// With the kernels as a matrix K (O, C kh kw) and the windows of an image as columns U (C kh kw, P), per group:
//   y = K U,   dK = sum over images of dy U^T,   dU = K^T dy,   dx = the sum of dU at the pixels of the windows.
// A device may have kernels for y, dK and dx (tensor/kernels/convolution.h). A transposed convolution is dx.
#include "braid/autograd/convolution.h"

#include <algorithm>
#include <vector>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/detail/windows.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

using detail::Windows;

// Columns of so many bytes are formed at a time, or those of one image.
constexpr int64_t kCpuBlockBytes = int64_t{1} << 20, kDeviceBlockBytes = int64_t{256} << 20;

void check_conv_images(const char* op, const Tensor& x) {
  check_float(op, x);
  check(x.rank() == 4, op, [&] { return str("images must be (B, C, H, W), got ", x.shape()); });
}

// Windows that tile the image: axes are split and exchanged, nothing is copied twice.
Tensor tiles(const Tensor& x, const Windows& w) {
  const int64_t B = x.dim(0), C = x.dim(1);
  const Tensor parts = reshape(x, {B, C, w.count.rows, w.kernel.rows, w.count.columns, w.kernel.columns});
  return reshape(permute(parts, {0, 2, 4, 1, 3, 5}), {B, w.number(), C * w.size()});
}

bool tiled(const Windows& w) {
  const auto fits = [](int64_t n, int64_t kernel, int64_t stride, int64_t dilation, int64_t count) {
    return count * kernel == n && (stride == kernel || count == 1) && (dilation == 1 || kernel == 1);
  };
  return w.before.rows + w.after.rows + w.before.columns + w.after.columns == 0 &&
         fits(w.image.rows, w.kernel.rows, w.stride.rows, w.dilation.rows, w.count.rows) &&
         fits(w.image.columns, w.kernel.columns, w.stride.columns, w.dilation.columns, w.count.columns);
}

// The sizes of one convolution.
struct ConvPlan {
  Windows w;
  int64_t groups, outputs, inputs;  // outputs of a group; C kh kw / groups
  ConvolutionShape shape() const {
    return {
        {w.image.rows, w.kernel.rows, w.stride.rows, w.dilation.rows, w.before.rows, w.count.rows},
        {w.image.columns, w.kernel.columns, w.stride.columns, w.dilation.columns, w.before.columns, w.count.columns},
        groups};
  }
  // The pixels themselves are the columns.
  bool pointwise() const { return w.size() == 1 && tiled(w); }
  Tensor matrix(const Tensor& weight) const { return reshape(weight, {groups, outputs, inputs}); }
  Shape columns(int64_t images) const { return {images, groups, inputs, w.number()}; }
  Shape rows(int64_t images) const { return {images, groups, outputs, w.number()}; }
  int64_t channels() const { return groups * inputs / w.size(); }
  Shape image(int64_t images) const { return {images, channels(), w.image.rows, w.image.columns}; }
  Shape result(int64_t images) const { return {images, groups * outputs, w.count.rows, w.count.columns}; }
};

Tensor conv_composed(const Tensor& x, const Tensor& weight, const ConvPlan& p) {
  const int64_t B = x.dim(0);
  const Tensor u = reshape(p.pointwise() ? x : detail::columns(x, p.w), p.columns(B));
  return reshape(matmul(p.matrix(weight), u), p.result(B));
}

Tensor transpose_composed(const Tensor& x, const Tensor& weight, const ConvPlan& p) {
  const int64_t B = x.dim(0);
  const Windows& w = p.w;
  const Tensor u = matmul(transpose(p.matrix(weight)), reshape(x, p.rows(B)));
  if (p.pointwise()) return reshape(u, p.image(B));
  return detail::sum_columns(
      reshape(u, {B, p.channels(), w.kernel.rows, w.kernel.columns, w.count.rows, w.count.columns}), w);
}

// Calls f(first image, last image + 1) for blocks whose columns stay in a cache.
template <class F>
void for_each_block(const Tensor& x, const ConvPlan& p, F&& f) {
  const int64_t image = std::max<int64_t>(p.groups * p.inputs * p.w.number() * size_of(x.dtype()), 1);
  const int64_t bytes = x.device() == kCpu ? kCpuBlockBytes : kDeviceBlockBytes;
  const int64_t step = p.pointwise() ? std::max<int64_t>(x.dim(0), 1) : std::max<int64_t>(bytes / image, 1);
  for (int64_t begin = 0; begin < x.dim(0); begin += step) f(begin, std::min(begin + step, x.dim(0)));
}

Tensor columns_of(const Tensor& images, const ConvPlan& p) {
  return (p.pointwise() ? images : detail::columns(images, p.w)).reshaped(p.columns(images.dim(0)));
}

// y, without history, as the next two.
Tensor conv_forward(const Tensor& images, const Tensor& weight, const ConvPlan& p) {
  const NoGrad off;
  const Tensor x = images.detach().contiguous(), kernels = weight.detach().contiguous();
  Tensor y = empty(p.result(x.dim(0)), x.dtype(), x.device());
  const Backend& device = backend(x.device());
  if (device.convolution.forward && device.convolution.forward(x, kernels, p.shape(), y)) return y;
  const Tensor k = p.matrix(kernels);
  Tensor rows = y.reshaped(p.rows(x.dim(0)));
  for_each_block(x, p, [&](int64_t begin, int64_t end) {
    const Tensor u = columns_of(x.sliced(0, begin, end), p);
    Tensor part = rows.sliced(0, begin, end);
    device.matmul.product(k.unsqueezed(0).expanded({end - begin, p.groups, p.outputs, p.inputs}), u, false, part);
  });
  return y;
}

// dx
Tensor input_gradient(const Tensor& gradient, const Tensor& weight, const ConvPlan& p) {
  const NoGrad off;
  const Tensor dy = gradient.detach().contiguous(), kernels = weight.detach().contiguous();
  Tensor dx = empty(p.image(dy.dim(0)), dy.dtype(), dy.device());
  const Backend& device = backend(dy.device());
  if (device.convolution.input_gradient && device.convolution.input_gradient(dy, kernels, p.shape(), dx)) return dx;
  const Tensor k = p.matrix(kernels).transposed(), rows = dy.reshaped(p.rows(dy.dim(0)));
  for_each_block(dy, p, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    Tensor part = dx.sliced(0, begin, end),
           u = p.pointwise() ? part.reshaped(p.columns(n)) : empty(p.columns(n), dy.dtype(), dy.device());
    device.matmul.product(k.unsqueezed(0).expanded({n, p.groups, p.inputs, p.outputs}), rows.sliced(0, begin, end),
                          false, u);
    if (p.pointwise()) return;
    const Windows& w = p.w;
    part.copy_(detail::sum_columns(
        u.reshaped({n, p.channels(), w.kernel.rows, w.kernel.columns, w.count.rows, w.count.columns}), w));
  });
  return dx;
}

// dweight; the images' contributions are added in their order.
Tensor weight_gradient(const Tensor& gradient, const Tensor& images, const Tensor& weight, const ConvPlan& p) {
  const NoGrad off;
  const Tensor dy = gradient.detach().contiguous(), x = images.detach().contiguous();
  const Backend& device = backend(x.device());
  if (device.convolution.weight_gradient) {
    Tensor dweight = empty(weight.shape(), x.dtype(), x.device());
    if (device.convolution.weight_gradient(dy, x, p.shape(), dweight)) return dweight;
  }
  const Tensor rows = dy.reshaped(p.rows(dy.dim(0)));
  Tensor dk = zeros({p.groups, p.outputs, p.inputs}, accumulate_type(x.dtype()), x.device());
  for_each_block(x, p, [&](int64_t begin, int64_t end) {
    const Tensor u = columns_of(x.sliced(0, begin, end), p);
    for (int64_t i = begin; i < end; ++i)
      device.matmul.product(rows.sliced(0, i, i + 1).squeezed(0),
                            u.sliced(0, i - begin, i - begin + 1).squeezed(0).transposed(), true, dk);
  });
  return dk.to(weight.dtype()).reshaped(weight.shape());
}

void check_channel_bias(const char* op, const Tensor& bias, int64_t outputs) {
  check(!bias || bias.shape() == Shape{outputs}, op,
        [&] { return str("the bias must be (", outputs, "), one number per output, got ", bias.shape()); });
}

Tensor add_channel_bias(const Tensor& y, const Tensor& bias) {
  return bias ? add(y, reshape(bias, {bias.dim(0), 1, 1})) : y;
}

// A sequence (B, C, L) as images of one row.
Tensor as_images(const char* op, const Tensor& x, const char* what) {
  check(x.rank() == 3, op, [&] { return str(what, ", got ", x.shape()); });
  return unsqueeze(x, 2);
}

}  // namespace

Tensor unfold(const Tensor& x, const Pixels& k, const Conv2dOptions& o) {
  const CalledOp called("unfold");
  check_conv_images("unfold", x);
  const Windows w = detail::windows_of({x.dim(2), x.dim(3)}, k, o);
  if (tiled(w)) return tiles(x, w);
  return reshape(permute(detail::columns(x, w), {0, 4, 5, 1, 2, 3}), {x.dim(0), w.number(), x.dim(1) * w.size()});
}

Tensor fold(const Tensor& rows, const Pixels& image, const Pixels& k, const Conv2dOptions& o) {
  const CalledOp called("fold");
  check_float("fold", rows);
  const Windows w = detail::windows_of(image, k, o);
  check(rows.rank() == 3 && rows.dim(1) == w.number() && rows.dim(2) % w.size() == 0, "fold",
        [&] { return str("rows must be (B, ", w.number(), ", a multiple of ", w.size(), "), got ", rows.shape()); });
  const Shape shape{rows.dim(0),   w.count.rows,    w.count.columns, rows.dim(2) / w.size(),
                    w.kernel.rows, w.kernel.columns};
  return detail::sum_columns(permute(reshape(rows, shape), {0, 3, 4, 5, 1, 2}), w);
}

Tensor window_pixels(const Pixels& image, const Pixels& k, const Conv2dOptions& o) {
  const CalledOp called("window_pixels");
  const int64_t H = image.rows, W = image.columns;
  const Windows w = detail::windows_of(image, k, o);
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(w.number() * w.size()));
  for (int64_t i = 0; i < w.count.rows; ++i)
    for (int64_t j = 0; j < w.count.columns; ++j)
      for (int64_t u = 0; u < k.rows; ++u)
        for (int64_t v = 0; v < k.columns; ++v) {
          const int64_t row = i * w.stride.rows + u * w.dilation.rows - w.before.rows;
          const int64_t column = j * w.stride.columns + v * w.dilation.columns - w.before.columns;
          const bool inside = row >= 0 && row < H && column >= 0 && column < W;
          ids.push_back(inside ? row * W + column : H * W);
        }
  return from_vector(ids, {w.number(), w.size()});
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o) {
  const CalledOp called("conv2d");
  check(o.groups >= 1, "conv2d", [&] { return str("groups must be at least 1, got ", o.groups); });
  check(weight.rank() == 4 && x.rank() == 4 && weight.dim(1) * o.groups == x.dim(1) && weight.dim(0) % o.groups == 0,
        "conv2d", [&] {
          if (o.groups == 1)
            return str("images (B, C, H, W) need kernels (O, C, kh, kw), got ", x.shape(), " and ", weight.shape());
          return str("images (B, C, H, W) in ", o.groups, " groups need kernels (O, C / groups, kh, kw), groups ",
                     "dividing O, got ", x.shape(), " and ", weight.shape());
        });
  check_float("conv2d", x);
  check_same("conv2d", x, weight);
  check_channel_bias("conv2d", bias, weight.dim(0));
  const Windows w = detail::windows_of({x.dim(2), x.dim(3)}, {weight.dim(2), weight.dim(3)}, o);
  const ConvPlan p{w, o.groups, weight.dim(0) / o.groups, weight.dim(1) * w.size()};
  const Tensor y = record("conv2d", conv_forward(x, weight, p), {x, weight},
                          differentiable([x, weight, p](const Tensor& dy) -> Grads {
                            if (recording()) {
                              const auto f = [p](const std::vector<Tensor>& in) {
                                return std::vector<Tensor>{conv_composed(in[0], in[1], p)};
                              };
                              return detail::composed_gradients({x, weight}, f, {dy});
                            }
                            return {requires_grad(x) ? input_gradient(dy, weight, p) : Tensor(),
                                    requires_grad(weight) ? weight_gradient(dy, x, weight, p) : Tensor()};
                          }));
  return add_channel_bias(y, bias);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& o) {
  const CalledOp called("conv1d");
  const Tensor images = as_images("conv1d", x, "sequences must be (B, C, L)");
  const Tensor kernels = as_images("conv1d", weight, "kernels must be (O, C / groups, k)");
  return squeeze(conv2d(images, kernels, bias,
                        {.stride = {1, o.stride},
                         .padding = {0, o.padding},
                         .dilation = {1, o.dilation},
                         .groups = o.groups,
                         .same = o.same}),
                 2);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose2dOptions& o) {
  const CalledOp called("conv_transpose2d");
  check_float("conv_transpose2d", x);
  check(o.groups >= 1 && x.rank() == 4 && weight.rank() == 4 && weight.dim(0) == x.dim(1) && x.dim(1) % o.groups == 0,
        "conv_transpose2d", [&] {
          return str("images (B, C, H, W) need kernels (C, O / groups, kh, kw), groups dividing C, got ", x.shape(),
                     ", ", weight.shape(), " and ", o.groups, " groups");
        });
  check_same("conv_transpose2d", x, weight);
  const int64_t C = x.dim(1), outputs = weight.dim(1);
  check_channel_bias("conv_transpose2d", bias, outputs * o.groups);
  const auto size = [](int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t more, int64_t dilation) {
    check(n >= 1 && stride >= 1 && more >= 0 && more < stride, "conv_transpose2d", [&] {
      return str("needs at least one pixel, a stride of at least 1 and an output padding less than it, got ", n, ", ",
                 stride, " and ", more);
    });
    return (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1;
  };
  const Pixels kernel{weight.dim(2), weight.dim(3)};
  const Pixels image{size(x.dim(2), kernel.rows, o.stride.rows, o.padding.rows, o.output_padding.rows, o.dilation.rows),
                     size(x.dim(3), kernel.columns, o.stride.columns, o.padding.columns, o.output_padding.columns,
                          o.dilation.columns)};
  check(image.rows >= 0 && image.columns >= 0, "conv_transpose2d",
        [&] { return str("the padding leaves nothing of a result of ", x.shape(), " by ", weight.shape()); });
  const Windows w =
      detail::windows_of(image, kernel, {.stride = o.stride, .padding = o.padding, .dilation = o.dilation});
  const ConvPlan p{w, o.groups, C / o.groups, outputs * w.size()};
  const Tensor y = record("conv_transpose2d", input_gradient(x, weight, p), {x, weight},
                          differentiable([x, weight, p](const Tensor& dy) -> Grads {
                            if (recording()) {
                              const auto f = [p](const std::vector<Tensor>& in) {
                                return std::vector<Tensor>{transpose_composed(in[0], in[1], p)};
                              };
                              return detail::composed_gradients({x, weight}, f, {dy});
                            }
                            return {requires_grad(x) ? conv_forward(dy, weight, p) : Tensor(),
                                    requires_grad(weight) ? weight_gradient(x, dy, weight, p) : Tensor()};
                          }));
  return add_channel_bias(y, bias);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose1dOptions& o) {
  const CalledOp called("conv_transpose1d");
  const Tensor images = as_images("conv_transpose1d", x, "sequences must be (B, C, L)");
  const Tensor kernels = as_images("conv_transpose1d", weight, "kernels must be (C, O / groups, k)");
  return squeeze(conv_transpose2d(images, kernels, bias,
                                  {.stride = {1, o.stride},
                                   .padding = {0, o.padding},
                                   .output_padding = {0, o.output_padding},
                                   .dilation = {1, o.dilation},
                                   .groups = o.groups}),
                 2);
}

}  // namespace braid
