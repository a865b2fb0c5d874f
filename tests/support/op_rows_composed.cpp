// Rows of autograd/composed.h and autograd/convolution.h.
#include <cmath>

#include "braid/autograd/convolution.h"

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

Array select_one_reference(const std::vector<Array>& in) {  // entry 1 of the axis 1 of three
  const Array& x = in[0];
  Array y{{x.shape[0], x.shape[2]}, {}};
  for (int64_t i = 0; i < x.shape[0]; ++i)
    for (int64_t j = 0; j < x.shape[2]; ++j)
      y.values.push_back(x.values[static_cast<size_t>((i * x.shape[1] + 1) * x.shape[2] + j)]);
  return y;
}

Array binary_cross_entropy_reference(const std::vector<Array>& in) {
  double sum = 0;
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    const double x = in[0].values[i];
    sum += std::fmax(x, 0) - x * in[1].values[i] + std::log1p(std::exp(-std::fabs(x)));
  }
  return {{}, {sum / static_cast<double>(in[0].values.size())}};
}

// Each element of the result by its definition. in: images, kernels and perhaps biases.
Array conv2d_reference(const std::vector<Array>& in, const Conv2dOptions& o) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t Ph = (x[2] + 2 * o.padding.rows - w[2]) / o.stride.rows + 1;
  const int64_t Pw = (x[3] + 2 * o.padding.columns - w[3]) / o.stride.columns + 1;
  Array y{{x[0], w[0], Ph, Pw}, {}};
  const auto at = [](const Array& a, int64_t i, int64_t j, int64_t u, int64_t v) {
    const bool inside = u >= 0 && u < a.shape[2] && v >= 0 && v < a.shape[3];
    return inside ? a.values[static_cast<size_t>(((i * a.shape[1] + j) * a.shape[2] + u) * a.shape[3] + v)] : 0.0;
  };
  for (int64_t b = 0; b < x[0]; ++b)
    for (int64_t k = 0; k < w[0]; ++k)
      for (int64_t i = 0; i < Ph; ++i)
        for (int64_t j = 0; j < Pw; ++j) {
          double sum = in.size() > 2 ? in[2].values[static_cast<size_t>(k)] : 0;
          for (int64_t c = 0; c < w[1]; ++c)
            for (int64_t u = 0; u < w[2]; ++u)
              for (int64_t v = 0; v < w[3]; ++v)
                sum += at(in[1], k, c, u, v) * at(in[0], b, c, i * o.stride.rows + u - o.padding.rows,
                                                  j * o.stride.columns + v - o.padding.columns);
          y.values.push_back(sum);
        }
  return y;
}

OpRow conv2d_row(const std::string& name, const Conv2dOptions& o, std::vector<std::vector<Shape>> cases) {
  return {.name = "conv2d:" + name,
          .op = [o](const auto& in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o); },
          .reference = [o](const auto& in) { return conv2d_reference(in, o); },
          .cases = std::move(cases),
          .roundings = 2};
}

Array unfold_reference(const std::vector<Array>& in) {  // windows of 2 x 3, moved by 1 and 2
  const Shape& x = in[0].shape;
  const int64_t Ph = x[2] - 1, Pw = (x[3] - 3) / 2 + 1;
  Array y{{x[0], Ph * Pw, x[1] * 6}, {}};
  for (int64_t b = 0; b < x[0]; ++b)
    for (int64_t i = 0; i < Ph; ++i)
      for (int64_t j = 0; j < Pw; ++j)
        for (int64_t c = 0; c < x[1]; ++c)
          for (int64_t u = 0; u < 2; ++u)
            for (int64_t v = 0; v < 3; ++v)
              y.values.push_back(in[0].values[static_cast<size_t>(((b * x[1] + c) * x[2] + i + u) * x[3] + 2 * j + v)]);
  return y;
}

}  // namespace

std::vector<OpRow> composed_rows() {
  return {
      {.name = "select",
       .op = [](const auto& in) { return select(in[0], -2, 1); },
       .reference = select_one_reference,
       .cases = {{{2, 3, 4}}, {{1, 2, 1}}}},
      {.name = "binary_cross_entropy",
       .op = [](const auto& in) { return binary_cross_entropy(in[0], in[1]); },
       .reference = binary_cross_entropy_reference,
       .cases = {{{3, 4}, {3, 4}}, {{7}, {7}}},
       .in_16_bit = false},
      {.name = "binary_cross_entropy:wide",
       .op = [](const auto& in) { return binary_cross_entropy(in[0], in[1]); },
       .reference = binary_cross_entropy_reference,
       .cases = {{{40}, {40}}},
       .low = -120,
       .high = 120,
       .in_16_bit = false},
      {.name = "unfold",
       .op =
           [](const auto& in) {
             return unfold(in[0], {2, 3}, {.stride = {1, 2}});
           },
       .reference = unfold_reference,
       .cases = {{{2, 2, 3, 5}}, {{1, 1, 2, 3}}, {{2, 3, 4, 8}}}},
      conv2d_row("patches", {.stride = {2, 3}}, {{{2, 3, 4, 6}, {5, 3, 2, 3}, {5}}, {{1, 1, 2, 3}, {1, 1, 2, 3}}}),
      conv2d_row("padded", {.padding = {1, 2}}, {{{2, 2, 3, 4}, {3, 2, 3, 3}, {3}}, {{1, 1, 1, 1}, {1, 1, 3, 5}}}),
      conv2d_row("strided", {.stride = {2, 1}, .padding = {0, 1}}, {{{2, 1, 5, 4}, {2, 1, 3, 2}}}),
  };
}

}  // namespace braid::test
