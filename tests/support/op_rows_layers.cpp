// Rows of autograd/convolution.h beyond conv2d of one group, of pooling.h and of losses.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "braid/autograd/convolution.h"
#include "braid/autograd/losses.h"
#include "braid/autograd/pooling.h"
#include "tests/support/op_table.h"

namespace braid::test {

namespace {

using Arrays = std::vector<Array>;
using Tensors = std::vector<Tensor>;

// The element of a (B, C, H, W) at these places; 0 outside of the image.
struct Images {
  const Array& a;
  bool has(int64_t i, int64_t j) const { return i >= 0 && i < a.shape[2] && j >= 0 && j < a.shape[3]; }
  double at(int64_t b, int64_t c, int64_t i, int64_t j) const {
    return has(i, j) ? a.values[static_cast<size_t>(((b * a.shape[1] + c) * a.shape[2] + i) * a.shape[3] + j)] : 0;
  }
};

// f(b, c, i, j) for every element of a result (B, C, H, W).
template <class F>
Array each_pixel(const Shape& shape, F&& f) {
  Array y{shape, {}};
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t i = 0; i < shape[2]; ++i)
        for (int64_t j = 0; j < shape[3]; ++j) y.values.push_back(f(b, c, i, j));
  return y;
}

// With the padding of each side said; in: images, kernels, biases.
Array grouped_reference(const Arrays& in, const Conv2dOptions& o, const Pixels& before, const Pixels& size) {
  const Images x{in[0]}, w{in[1]};
  const int64_t O = in[1].shape[0], C = in[1].shape[1];
  return each_pixel({in[0].shape[0], O, size.rows, size.columns}, [&](int64_t b, int64_t k, int64_t i, int64_t j) {
    double sum = in[2].values[static_cast<size_t>(k)];
    for (int64_t c = 0; c < C; ++c)
      for (int64_t u = 0; u < in[1].shape[2]; ++u)
        for (int64_t v = 0; v < in[1].shape[3]; ++v)
          sum += w.at(k, c, u, v) * x.at(b, k / (O / o.groups) * C + c,
                                         i * o.stride.rows + u * o.dilation.rows - before.rows,
                                         j * o.stride.columns + v * o.dilation.columns - before.columns);
    return sum;
  });
}

// Every pixel of x adds its kernels to the result.
Array transposed_reference(const Arrays& in, const ConvTranspose2dOptions& o, const Pixels& size) {
  const Images x{in[0]}, w{in[1]};
  const int64_t C = in[0].shape[1], O = in[1].shape[1];
  return each_pixel({in[0].shape[0], O * o.groups, size.rows, size.columns},
                    [&](int64_t b, int64_t k, int64_t y, int64_t z) {
                      double sum = in[2].values[static_cast<size_t>(k)];
                      const int64_t group = k / O, channels = C / o.groups;
                      for (int64_t c = group * channels; c < (group + 1) * channels; ++c)
                        for (int64_t i = 0; i < in[0].shape[2]; ++i)
                          for (int64_t j = 0; j < in[0].shape[3]; ++j)
                            for (int64_t u = 0; u < in[1].shape[2]; ++u)
                              for (int64_t v = 0; v < in[1].shape[3]; ++v)
                                if (i * o.stride.rows + u * o.dilation.rows - o.padding.rows == y &&
                                    j * o.stride.columns + v * o.dilation.columns - o.padding.columns == z)
                                  sum += x.at(b, c, i, j) * w.at(c, k % O, u, v);
                      return sum;
                    });
}

Array fold_reference(const Arrays& in) {  // windows of 2 x 3 moved by 1 and 2 in an image of 3 x 5
  Array y{{in[0].shape[0], in[0].shape[2] / 6, 3, 5}, {}};
  y.values.resize(static_cast<size_t>(numel(y.shape)));
  size_t at = 0;
  for (int64_t b = 0; b < y.shape[0]; ++b)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 2; ++j)
        for (int64_t c = 0; c < y.shape[1]; ++c)
          for (int64_t u = 0; u < 2; ++u)
            for (int64_t v = 0; v < 3; ++v)
              y.values[static_cast<size_t>(((b * y.shape[1] + c) * 3 + i + u) * 5 + 2 * j + v)] += in[0].values[at++];
  return y;
}

// Windows of 3 x 2 moved by 2 and 1, with a row of padding on each side; f(the values of a window).
template <class F>
Array pool_reference(const Array& x, F&& f) {
  const Images images{x};
  return each_pixel({x.shape[0], x.shape[1], (x.shape[2] - 1) / 2 + 1, x.shape[3] - 1},
                    [&](int64_t b, int64_t c, int64_t i, int64_t j) {
                      std::vector<double> seen;
                      for (int64_t u = 0; u < 3; ++u)
                        for (int64_t v = 0; v < 2; ++v)
                          if (images.has(2 * i + u - 1, j + v)) seen.push_back(images.at(b, c, 2 * i + u - 1, j + v));
                      return f(seen);
                    });
}
double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}
constexpr Pixels kPool = {3, 2};
constexpr Pool2dOptions kPooling = {.stride = {2, 1}, .padding = {1, 0}};

Array adaptive_reference(const Array& x, int64_t rows, int64_t columns) {
  const Images images{x};
  const auto begin = [](int64_t i, int64_t n, int64_t size) { return i * n / size; };
  const auto end = [](int64_t i, int64_t n, int64_t size) { return ((i + 1) * n + size - 1) / size; };
  return each_pixel({x.shape[0], x.shape[1], rows, columns}, [&](int64_t b, int64_t c, int64_t i, int64_t j) {
    double sum = 0, count = 0;
    for (int64_t u = begin(i, x.shape[2], rows); u < end(i, x.shape[2], rows); ++u)
      for (int64_t v = begin(j, x.shape[3], columns); v < end(j, x.shape[3], columns); ++v, ++count)
        sum += images.at(b, c, u, v);
    return sum / count;
  });
}

Array bilinear_reference(const Array& x, int64_t rows, int64_t columns, bool align) {
  const Images images{x};
  const auto place = [&](int64_t i, int64_t n, int64_t size) {
    const auto a = static_cast<double>(i), from = static_cast<double>(n), to = static_cast<double>(size);
    return align ? a * (from - 1) / (to - 1) : std::fmax((a + 0.5) * from / to - 0.5, 0);
  };
  return each_pixel({x.shape[0], x.shape[1], rows, columns}, [&](int64_t b, int64_t c, int64_t i, int64_t j) {
    const double y = place(i, x.shape[2], rows), z = place(j, x.shape[3], columns);
    double sum = 0;
    for (int64_t u = 0; u < x.shape[2]; ++u)
      for (int64_t v = 0; v < x.shape[3]; ++v) {  // tents around the pixels, flat beyond the last
        const double dy = std::fabs(std::fmin(y, static_cast<double>(x.shape[2] - 1)) - static_cast<double>(u));
        const double dz = std::fabs(std::fmin(z, static_cast<double>(x.shape[3] - 1)) - static_cast<double>(v));
        sum += std::fmax(1 - dy, 0) * std::fmax(1 - dz, 0) * images.at(b, c, u, v);
      }
    return sum;
  });
}

OpRow grouped_row(const std::string& name, const Conv2dOptions& o, const Pixels& before, const Pixels& size,
                  std::vector<Shape> shapes) {
  return {.name = "conv2d:" + name,
          .op = [o](const Tensors& in) { return conv2d(in[0], in[1], in[2], o); },
          .reference = [=](const Arrays& in) { return grouped_reference(in, o, before, size); },
          .cases = {std::move(shapes)},
          .roundings = 2};
}

OpRow transposed_row(const std::string& name, const ConvTranspose2dOptions& o, const Pixels& size,
                     std::vector<Shape> shapes) {
  return {.name = "conv_transpose2d:" + name,
          .op = [o](const Tensors& in) { return conv_transpose2d(in[0], in[1], in[2], o); },
          .reference = [=](const Arrays& in) { return transposed_reference(in, o, size); },
          .cases = {std::move(shapes)},
          .roundings = 4};
}

// Mean of f(x, y).
OpRow pair_row(const std::string& name, std::function<Tensor(const Tensor&, const Tensor&)> op,
               double (*f)(double, double)) {
  return {.name = name,
          .op = [op = std::move(op)](const Tensors& in) { return op(in[0], in[1]); },
          .reference =
              [f](const Arrays& in) {
                const Array y = zip(in[0], in[1], f);
                return Array{{}, {total(y.values) / static_cast<double>(y.values.size())}};
              },
          .cases = {{{3, 4}, {3, 4}}, {{5}, {5}}},
          .in_16_bit = false};
}

// Smoothing 0.2, weights 0.5, 1, 1.5, ... of the classes; in: logits (R, V), ids (R).
Array smoothed_reference(const Arrays& in) {
  const int64_t V = in[0].shape[1], R = in[0].shape[0];
  double sum = 0, weights = 0;
  for (int64_t r = 0; r < R; ++r) {
    const double* x = in[0].values.data() + r * V;
    double norm = 0;
    for (int64_t c = 0; c < V; ++c) norm += std::exp(x[c]);
    const auto loss = [&](int64_t c) { return (0.5 + 0.5 * static_cast<double>(c)) * (std::log(norm) - x[c]); };
    const auto t = static_cast<int64_t>(in[1].values[static_cast<size_t>(r)]);
    sum += 0.8 * loss(t);
    for (int64_t c = 0; c < V; ++c) sum += 0.2 / static_cast<double>(V) * loss(c);
    weights += 0.5 + 0.5 * static_cast<double>(t);
  }
  return {{}, {sum / weights}};
}

Array cosine_reference(const Arrays& in) {  // along axis 1 of (B, N, D)
  const Shape& s = in[0].shape;
  Array y{{s[0], s[2]}, {}};
  for (int64_t b = 0; b < s[0]; ++b)
    for (int64_t d = 0; d < s[2]; ++d) {
      double xy = 0, xx = 0, yy = 0;
      for (int64_t n = 0; n < s[1]; ++n) {
        const auto at = static_cast<size_t>((b * s[1] + n) * s[2] + d);
        xy += in[0].values[at] * in[1].values[at];
        xx += in[0].values[at] * in[0].values[at];
        yy += in[1].values[at] * in[1].values[at];
      }
      y.values.push_back(xy / std::sqrt(xx * yy));
    }
  return y;
}

Array triplet_reference(const Arrays& in) {
  const int64_t D = in[0].shape[1], R = in[0].shape[0];
  double sum = 0;
  for (int64_t r = 0; r < R; ++r) {
    double p = 0, n = 0;
    for (auto i = static_cast<size_t>(r * D); i < static_cast<size_t>((r + 1) * D); ++i) {
      p += std::pow(in[0].values[i] - in[1].values[i] + 1e-6, 2);
      n += std::pow(in[0].values[i] - in[2].values[i] + 1e-6, 2);
    }
    sum += std::fmax(0, 3 + std::sqrt(p) - std::sqrt(n));
  }
  return {{}, {sum / static_cast<double>(R)}};
}

std::vector<OpRow> convolution_rows() {
  return {
      grouped_row("groups", {.stride = {2, 1}, .groups = 2}, {0, 0}, {2, 3}, {{2, 4, 5, 4}, {6, 2, 3, 2}, {6}}),
      grouped_row("dilation", {.padding = {1, 2}, .dilation = {2, 3}}, {1, 2}, {2, 3},
                  {{2, 2, 4, 5}, {3, 2, 3, 3}, {3}}),
      grouped_row("same", {.same = true}, {0, 1}, {4, 3}, {{1, 2, 4, 3}, {2, 2, 2, 3}, {2}}),
      transposed_row("stride", {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}}, {5, 11},
                     {{2, 2, 3, 3}, {2, 3, 2, 3}, {3}}),
      transposed_row("groups", {.dilation = {1, 2}, .groups = 2}, {4, 5}, {{1, 4, 3, 3}, {4, 2, 2, 2}, {4}}),
      {.name = "fold",
       .op =
           [](const Tensors& in) {
             return fold(in[0], {3, 5}, {2, 3}, {.stride = {1, 2}});
           },
       .reference = fold_reference,
       .cases = {{{2, 4, 12}}, {{1, 4, 6}}}},
      {.name = "conv1d",
       .op = [](const Tensors& in) { return conv1d(in[0], in[1], in[2], {.padding = 1}); },
       .reference =
           [](const Arrays& in) {
             const auto rank4 = [](const Array& a) { return Array{{a.shape[0], a.shape[1], 1, a.shape[2]}, a.values}; };
             Array y = grouped_reference({rank4(in[0]), rank4(in[1]), in[2]}, {}, {0, 1}, {1, in[0].shape[2]});
             y.shape = {y.shape[0], y.shape[1], y.shape[3]};
             return y;
           },
       .cases = {{{2, 3, 5}, {2, 3, 3}, {2}}},
       .roundings = 2},
  };
}

std::vector<OpRow> pooling_rows() {
  const auto resized = [](const std::string& name, const InterpolateOptions& o, auto reference) {
    return OpRow{.name = "interpolate:" + name,
                 .op =
                     [o](const Tensors& in) {
                       return interpolate(in[0], Pixels{4, 2}, o);
                     },
                 .reference = [reference](const Arrays& in) { return reference(in[0]); },
                 .cases = {{{2, 2, 3, 5}}, {{1, 1, 2, 1}}},
                 .roundings = 4};
  };
  return {
      {.name = "max_pool2d",
       .op = [](const Tensors& in) { return max_pool2d(spread(in[0]), kPool, kPooling); },
       .reference =
           [](const Arrays& in) {
             return pool_reference(spread(in[0]),
                                   [](const auto& seen) { return *std::max_element(seen.begin(), seen.end()); });
           },
       .cases = {{{2, 2, 4, 5}}, {{1, 1, 2, 2}}}},
      {.name = "avg_pool2d",
       .op = [](const Tensors& in) { return avg_pool2d(in[0], kPool, kPooling); },
       .reference =
           [](const Arrays& in) { return pool_reference(in[0], [](const auto& seen) { return total(seen) / 6; }); },
       .cases = {{{2, 2, 4, 5}}, {{1, 1, 2, 2}}},
       .roundings = 2},
      {.name = "avg_pool2d:without_padding",
       .op =
           [](const Tensors& in) {
             Pool2dOptions o = kPooling;
             o.count_include_pad = false;
             return avg_pool2d(in[0], kPool, o);
           },
       .reference =
           [](const Arrays& in) {
             return pool_reference(in[0],
                                   [](const auto& seen) { return total(seen) / static_cast<double>(seen.size()); });
           },
       .cases = {{{2, 2, 4, 5}}},
       .roundings = 2},
      {.name = "adaptive_avg_pool2d",
       .op =
           [](const Tensors& in) {
             return adaptive_avg_pool2d(in[0], {2, 3});
           },
       .reference = [](const Arrays& in) { return adaptive_reference(in[0], 2, 3); },
       .cases = {{{2, 2, 5, 4}}, {{1, 2, 2, 3}}, {{1, 1, 1, 2}}},
       .roundings = 3},
      resized("nearest", {},
              [](const Array& x) {
                return each_pixel({x.shape[0], x.shape[1], 4, 2}, [&](int64_t b, int64_t c, int64_t i, int64_t j) {
                  return Images{x}.at(b, c, i * x.shape[2] / 4, j * x.shape[3] / 2);
                });
              }),
      resized("linear", {.mode = Interpolation::linear},
              [](const Array& x) { return bilinear_reference(x, 4, 2, false); }),
      resized("corners", {.mode = Interpolation::linear, .align_corners = true},
              [](const Array& x) { return bilinear_reference(x, 4, 2, true); }),
  };
}

std::vector<OpRow> loss_rows() {
  return {
      {.name = "cross_entropy:smoothed",
       .op =
           [](const Tensors& in) {
             const Tensor weight = affine(arange(in[0].dim(1), in[0].dtype(), in[0].device()), 0.5, 0.5);
             return cross_entropy(in[0], in[1], {.weight = weight, .label_smoothing = 0.2});
           },
       .reference = smoothed_reference,
       .cases = {{{4, 5}, {4}}},
       .index_limits = {0, 5},
       .in_16_bit = false},
      pair_row(
          "mse_loss:reduced", [](const Tensor& x, const Tensor& y) { return mse_loss(x, y, Reduction::mean); },
          [](double x, double y) { return (x - y) * (x - y); }),
      pair_row(
          "l1_loss", [](const Tensor& x, const Tensor& y) { return l1_loss(x, y); },
          [](double x, double y) { return std::fabs(x - y); }),
      pair_row(
          "huber_loss", [](const Tensor& x, const Tensor& y) { return huber_loss(x, y, 1.5); },
          [](double x, double y) {
            const double d = std::fabs(x - y);
            return d <= 1.5 ? d * d / 2 : 1.5 * (d - 0.75);
          }),
      pair_row(
          "smooth_l1_loss", [](const Tensor& x, const Tensor& y) { return smooth_l1_loss(x, y, 0.5); },
          [](double x, double y) {
            const double d = std::fabs(x - y);
            return d <= 0.5 ? d * d : d - 0.25;
          }),
      pair_row(
          "hinge_loss", [](const Tensor& x, const Tensor& y) { return hinge_loss(x, y, 0.5); },
          [](double x, double y) { return std::fmax(0.5 - x * y, 0); }),
      pair_row(
          "kl_div", [](const Tensor& x, const Tensor& y) { return kl_div(x, square(y) + 0.25); },
          [](double x, double y) {
            const double t = y * y + 0.25;
            return t * (std::log(t) - x);
          }),
      pair_row(
          "kl_div:log", [](const Tensor& x, const Tensor& y) { return kl_div(x, y, {.log_target = true}); },
          [](double x, double y) { return std::exp(y) * (y - x); }),
      pair_row(
          "bce_with_logits_loss",
          [](const Tensor& x, const Tensor& y) {
            const Tensor two = full({}, 2, x.dtype(), x.device()), half = full({}, 0.5, x.dtype(), x.device());
            return bce_with_logits_loss(x, y, {.weight = half, .pos_weight = two});
          },
          [](double x, double t) {
            const double p = 1 / (1 + std::exp(-x));
            return -0.5 * (2 * t * std::log(p) + (1 - t) * std::log(1 - p));
          }),
      {.name = "cosine_similarity",
       .op = [](const Tensors& in) { return cosine_similarity(in[0], in[1], 1); },
       .reference = cosine_reference,
       .cases = {{{2, 3, 4}, {2, 3, 4}}}},
      {.name = "triplet_margin_loss",
       .op = [](const Tensors& in) { return triplet_margin_loss(in[0], in[1], in[2], 3); },
       .reference = triplet_reference,
       .cases = {{{4, 3}, {4, 3}, {4, 3}}},
       .in_16_bit = false},
  };
}

}  // namespace

std::vector<OpRow> layer_rows() {
  std::vector<OpRow> rows = convolution_rows();
  for (OpRow& row : pooling_rows()) rows.push_back(std::move(row));
  for (OpRow& row : loss_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace braid::test
