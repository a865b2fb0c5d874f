// Windows are a view with strides of the padded image, so that one strided copy forms the columns, in runs along a row
// of the image. Their adjoint adds, for each of the kernel's pixels, a plane of columns to such a view.
#include "braid/autograd/detail/windows.h"

#include "braid/autograd/detail/check.h"

namespace braid::detail {

namespace {

struct WindowAxis {
  int64_t before, after, count;
};

WindowAxis windows_along(int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool same) {
  check(kernel >= 1 && stride >= 1 && padding >= 0 && dilation >= 1, "unfold", [&] {
    return str("a window needs a size, stride and dilation of at least 1 and a padding of at least 0, got ", kernel,
               ", ", stride, ", ", dilation, " and ", padding);
  });
  const int64_t reach = dilation * (kernel - 1);  // from the first pixel of a window to its last
  if (same) {
    check(stride == 1, "unfold", [&] { return str("the same size as the image needs stride 1, got ", stride); });
    return {reach / 2, reach - reach / 2, n};
  }
  check(reach < n + 2 * padding, "unfold", [&] {
    return str("a window of ", reach + 1, " pixels, moved by ", stride, ", must fit into ", n, " pixels with ", padding,
               " zeros on each side");
  });
  return {padding, padding, (n + 2 * padding - reach - 1) / stride + 1};
}

Pixels padded_size(const Windows& w) {
  return {w.before.rows + w.image.rows + w.after.rows, w.before.columns + w.image.columns + w.after.columns};
}

bool pads_image(const Windows& w) { return w.before.rows + w.after.rows + w.before.columns + w.after.columns > 0; }

// The image without its padding; a view.
Tensor without_padding(const Tensor& padded, const Windows& w) {
  return padded.sliced(2, w.before.rows, w.before.rows + w.image.rows)
      .sliced(3, w.before.columns, w.before.columns + w.image.columns);
}

}  // namespace

Windows windows_of(const Pixels& image, const Pixels& kernel, const Conv2dOptions& o) {
  const WindowAxis down =
      windows_along(image.rows, kernel.rows, o.stride.rows, o.padding.rows, o.dilation.rows, o.same);
  const WindowAxis right =
      windows_along(image.columns, kernel.columns, o.stride.columns, o.padding.columns, o.dilation.columns, o.same);
  return {.image = image,
          .kernel = kernel,
          .stride = o.stride,
          .dilation = o.dilation,
          .before = {down.before, right.before},
          .after = {down.after, right.after},
          .count = {down.count, right.count}};
}

Tensor columns(const Tensor& x, const Windows& w, double padding) {
  const int64_t B = x.dim(0), C = x.dim(1);
  Tensor image = x.detach();
  if (pads_image(w)) {
    const Pixels size = padded_size(w);
    image = full({B, C, size.rows, size.columns}, padding, x.dtype(), x.device());
    Tensor middle = without_padding(image, w);
    middle.copy_(x.detach());
  }
  const Strides& s = image.strides();
  const Shape shape{B, C, w.kernel.rows, w.kernel.columns, w.count.rows, w.count.columns};
  Tensor y = empty(shape, x.dtype(), x.device());
  if (y.numel() > 0)
    y.copy_(image.view(
        shape,
        {s[0], s[1], s[2] * w.dilation.rows, s[3] * w.dilation.columns, s[2] * w.stride.rows, s[3] * w.stride.columns},
        0));
  return record("unfold", y, {x}, differentiable([w](const Tensor& dy) -> Grads { return {sum_columns(dy, w)}; }));
}

Tensor sum_columns(const Tensor& columns_, const Windows& w) {
  const int64_t B = columns_.dim(0), C = columns_.dim(1);
  const Pixels size = padded_size(w);
  const Tensor parts = columns_.detach().to(accumulate_type(columns_.dtype()));  // 16 bits are rounded once
  Tensor image = zeros({B, C, size.rows, size.columns}, parts.dtype(), parts.device());
  const Strides& s = image.strides();
  for (int64_t u = 0; u < w.kernel.rows && parts.numel() > 0; ++u)
    for (int64_t v = 0; v < w.kernel.columns; ++v) {
      Tensor there =
          image.view({B, C, w.count.rows, w.count.columns}, {s[0], s[1], s[2] * w.stride.rows, s[3] * w.stride.columns},
                     u * w.dilation.rows * s[2] + v * w.dilation.columns * s[3]);
      there.add_(parts.sliced(2, u, u + 1).sliced(3, v, v + 1).squeezed(2).squeezed(2));
    }
  const Tensor y = (pads_image(w) ? without_padding(image, w) : image).to(columns_.dtype()).contiguous();
  return record("fold", y, {columns_}, differentiable([w](const Tensor& dy) -> Grads { return {columns(dy, w)}; }));
}

}  // namespace braid::detail
