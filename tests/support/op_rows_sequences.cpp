// Rows of the one-dimensional forms of convolution.h and pooling.h, and of the losses whose targets are labels.
#include <algorithm>
#include <cmath>

#include "braid/autograd/convolution.h"
#include "braid/autograd/losses.h"
#include "braid/autograd/pooling.h"
#include "tests/support/op_table.h"

namespace braid::test {

namespace {

using Arrays = std::vector<Array>;
using Tensors = std::vector<Tensor>;

// x (B, C, L) -> (B, C, P), f(the window of 3 that begins at 2 p).
template <class F>
Array windows_of_three(const Array& x, F&& f) {
  const int64_t L = x.shape[2], P = (L - 3) / 2 + 1;
  Array y{{x.shape[0], x.shape[1], P}, {}};
  for (int64_t row = 0; row < x.shape[0] * x.shape[1]; ++row)
    for (int64_t p = 0; p < P; ++p) y.values.push_back(f(x.values.data() + row * L + 2 * p));
  return y;
}

double largest(const double* window) { return *std::max_element(window, window + 3); }

// x (B, C, L), w (C, O, k), bias (O): each element adds its kernel, moved by 2.
Array transposed_sequence(const Arrays& in) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  Array y{{x[0], w[1], (x[2] - 1) * 2 + w[2]}, {}};
  y.values.assign(static_cast<size_t>(numel(y.shape)), 0);
  const auto at = [](int64_t a, int64_t b, int64_t n, int64_t c, int64_t m) {
    return static_cast<size_t>((a * n + b) * m + c);
  };
  for (int64_t b = 0; b < x[0]; ++b)
    for (int64_t o = 0; o < w[1]; ++o) {
      for (int64_t i = 0; i < y.shape[2]; ++i)
        y.values[at(b, o, w[1], i, y.shape[2])] = in[2].values[static_cast<size_t>(o)];
      for (int64_t c = 0; c < x[1]; ++c)
        for (int64_t i = 0; i < x[2]; ++i)
          for (int64_t k = 0; k < w[2]; ++k)
            y.values[at(b, o, w[1], 2 * i + k, y.shape[2])] +=
                in[0].values[at(b, c, x[1], i, x[2])] * in[1].values[at(c, o, w[1], k, w[2])];
    }
  return y;
}

// The mean of -x[t] over rows, x (R, V).
Array nll_reference(const Arrays& in) {
  const int64_t R = in[0].shape[0], V = in[0].shape[1];
  double sum = 0;
  for (int64_t r = 0; r < R; ++r)
    sum -= in[0].values[static_cast<size_t>(r * V + static_cast<int64_t>(in[1].values[static_cast<size_t>(r)]))];
  return {{}, {sum / static_cast<double>(R)}};
}

// Labels 1, -1, 1 ...; margin -0.9.
Array cosine_embedding_reference(const Arrays& in) {
  const int64_t B = in[0].shape[0], D = in[0].shape[1];
  double sum = 0;
  for (int64_t b = 0; b < B; ++b) {
    double xy = 0, xx = 0, yy = 0;
    for (auto i = static_cast<size_t>(b * D); i < static_cast<size_t>((b + 1) * D); ++i) {
      xy += in[0].values[i] * in[1].values[i];
      xx += in[0].values[i] * in[0].values[i];
      yy += in[1].values[i] * in[1].values[i];
    }
    const double cosine = xy / std::sqrt(xx * yy);
    sum += b % 2 == 0 ? 1 - cosine : std::fmax(0, cosine + 0.9);
  }
  return {{}, {sum / static_cast<double>(B)}};
}
Tensor alternating(int64_t n, const Tensor& like) {
  std::vector<double> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(i % 2 == 0 ? 1 : -1);
  return from_vector(labels, {n}).to(like.dtype()).to(like.device());
}

}  // namespace

std::vector<OpRow> sequence_rows() {
  const std::vector<std::vector<Shape>> shapes{{{2, 3, 7}}, {{1, 1, 3}}, {{1, 2, 6}}};
  const auto pool = [&](const char* name, std::function<Tensor(const Tensor&)> op, double (*f)(const double*)) {
    return OpRow{.name = name,
                 .op = [op](const Tensors& in) { return op(spread(in[0])); },
                 .reference = [f](const Arrays& in) { return windows_of_three(spread(in[0]), f); },
                 .cases = shapes,
                 .roundings = 3};
  };
  return {
      pool(
          "max_pool1d", [](const Tensor& x) { return max_pool1d(x, 3, {.stride = 2}); }, largest),
      pool(
          "max_pool1d_with_indices",
          [](const Tensor& x) { return max_pool1d_with_indices(x, 3, {.stride = 2}).values; }, largest),
      pool(
          "max_pool2d_with_indices",
          [](const Tensor& x) {
            return squeeze(max_pool2d_with_indices(unsqueeze(x, 2), {1, 3}, {.stride = {1, 2}}).values, 2);
          },
          largest),
      pool(
          "avg_pool1d", [](const Tensor& x) { return avg_pool1d(x, 3, {.stride = 2}); },
          [](const double* w) { return (w[0] + w[1] + w[2]) / 3; }),
      {.name = "adaptive_avg_pool1d",
       .op = [](const Tensors& in) { return adaptive_avg_pool1d(in[0], 2); },
       .reference =
           [](const Arrays& in) {  // of six: the means of three
             Array y{{in[0].shape[0], in[0].shape[1], 2}, {}};
             for (size_t i = 0; i < in[0].values.size(); i += 3)
               y.values.push_back((in[0].values[i] + in[0].values[i + 1] + in[0].values[i + 2]) / 3);
             return y;
           },
       .cases = {{{2, 3, 6}}},
       .roundings = 3},
      {.name = "conv_transpose1d",
       .op = [](const Tensors& in) { return conv_transpose1d(in[0], in[1], in[2], {.stride = 2}); },
       .reference = transposed_sequence,
       .cases = {{{2, 3, 4}, {3, 2, 3}, {2}}},
       .roundings = 4},
      {.name = "nll_loss",
       .op = [](const Tensors& in) { return nll_loss(in[0], in[1]); },
       .reference = nll_reference,
       .cases = {{{4, 5}, {4}}},
       .index_limits = {0, 5},
       .in_16_bit = false},
      {.name = "cosine_embedding_loss",
       .op =
           [](const Tensors& in) {
             return cosine_embedding_loss(in[0], in[1], alternating(in[0].dim(0), in[0]), -0.9);
           },
       .reference = cosine_embedding_reference,
       .cases = {{{4, 3}, {4, 3}}},
       .in_16_bit = false},
  };
}

}  // namespace braid::test
