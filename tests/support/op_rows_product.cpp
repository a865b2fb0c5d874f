#include <cmath>
#include <functional>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

Shape matrix_shape(const Shape& batch, int64_t rows, int64_t columns) {
  Shape s = batch;
  s.push_back(rows);
  s.push_back(columns);
  return s;
}

// Every product of the batch by three loops.
Array matmul_reference(const std::vector<Array>& in) {
  const Array &x = in[0], &z = in[1];
  Shape bx, bz;
  for (int a = 0; a < x.shape.rank() - 2; ++a) bx.push_back(x.shape[a]);
  for (int a = 0; a < z.shape.rank() - 2; ++a) bz.push_back(z.shape[a]);
  Shape batch = broadcast(bx, bz, "reference"), walk = contiguous_strides(batch);
  int64_t m = x.shape[-2], k = x.shape[-1], n = z.shape[-1], count = numel(batch);
  Strides sx = broadcast_strides(bx, contiguous_strides(bx), batch, "reference");
  Strides sz = broadcast_strides(bz, contiguous_strides(bz), batch, "reference");
  Array y{matrix_shape(batch, m, n), {}};
  for (int64_t b = 0; b < count; ++b) {
    int64_t ix = 0, iz = 0, rest = b;
    for (int a = 0; a < batch.rank(); ++a) {
      ix += rest / walk[a] * sx[a];
      iz += rest / walk[a] * sz[a];
      rest %= walk[a];
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum +=
              x.values[static_cast<size_t>((ix * m + i) * k + l)] * z.values[static_cast<size_t>((iz * k + l) * n + j)];
        }
        y.values.push_back(sum);
      }
    }
  }
  return y;
}

Array linear_reference(const std::vector<Array>& in) {
  const Array &x = in[0], &w = in[1];
  int64_t k = w.shape[1], n = w.shape[0];
  Array y{x.shape, {}};
  y.shape[-1] = n;
  int64_t rows = n == 0 ? 0 : numel(y.shape) / n;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = in.size() > 2 ? in[2].values[static_cast<size_t>(j)] : 0;
      for (int64_t l = 0; l < k; ++l)
        sum += x.values[static_cast<size_t>(r * k + l)] * w.values[static_cast<size_t>(j * k + l)];
      y.values.push_back(sum);
    }
  }
  return y;
}

// linear_pair with the halves of in[1] as its weights.
LinearPair halves_of_linear(const std::vector<Tensor>& in) {
  const int64_t out = in[1].dim(0) / 2;
  return linear_pair(in[0], slice(in[1], 0, 0, out), slice(in[1], 0, out, 2 * out));
}
Array product_of_halves(const std::vector<Array>& in, const std::function<double(double)>& f) {
  const Array both = linear_reference(in);
  Array y{both.shape, {}};
  const int64_t out = both.shape[-1] / 2, rows = numel(both.shape) / (2 * out);
  y.shape[-1] = out;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < out; ++j)
      y.values.push_back(f(both.values[static_cast<size_t>(2 * r * out + j)]) *
                         both.values[static_cast<size_t>((2 * r + 1) * out + j)]);
  return y;
}

}  // namespace

std::vector<OpRow> product_rows() {
  return {
      {.name = "matmul",
       .op = [](const auto& in) { return matmul(in[0], in[1]); },
       .reference = matmul_reference,
       .cases = {{{3, 4}, {4, 5}},
                 {{1, 1}, {1, 1}},
                 {{17, 33}, {33, 19}},
                 {{2, 3, 4}, {2, 4, 5}},
                 {{2, 3, 4, 5}, {2, 3, 5, 2}},
                 {{2, 1, 3, 4}, {1, 3, 4, 2}},  // both repeat
                 {{2, 3, 4}, {4, 5}},           // one right side for all of the batch
                 {{3, 4}, {2, 4, 5}},           // one left side
                 {{2, 3, 1, 4}, {4, 5}},        // rows of single vectors
                 {{2, 1, 3, 4}, {1, 1, 4, 2}},
                 {{0, 4}, {4, 5}},
                 {{3, 0}, {0, 5}},
                 {{2, 3, 0}, {0, 5}},
                 {{3, 4}, {4, 0}},
                 {{0, 3, 4}, {0, 4, 5}}}},
      {.name = "linear",
       .op = [](const auto& in) { return linear(in[0], in[1], in[2]); },
       .reference = linear_reference,
       .cases = {{{4, 3}, {5, 3}, {5}},
                 {{2, 3, 4}, {5, 4}, {5}},
                 {{2, 2, 3, 4}, {1, 4}, {1}},
                 {{7}, {3, 7}, {3}},
                 {{0, 4}, {5, 4}, {5}},
                 {{3, 0}, {2, 0}, {2}},
                 {{18, 35}, {21, 35}, {21}}}},
      // The product of both results; weights apart, weights in one memory, and there SwiGLU, whose derivative is in one
      // too.
      {.name = "linear_pair",
       .op =
           [](const auto& in) {
             const auto [a, b] = linear_pair(in[0], in[1], in[2]);
             return mul(a, b);
           },
       .reference =
           [](const auto& in) {
             return zip(linear_reference({in[0], in[1]}), linear_reference({in[0], in[2]}), std::multiplies<>());
           },
       .cases = {{{4, 3}, {5, 3}, {5, 3}}, {{2, 3, 4}, {1, 4}, {1, 4}}, {{7}, {3, 7}, {3, 7}}},
       .roundings = 3},
      {.name = "linear_pair:one_memory",
       .op =
           [](const auto& in) {
             const auto [a, b] = halves_of_linear(in);
             return mul(a, b);
           },
       .reference = [](const auto& in) { return product_of_halves(in, [](double a) { return a; }); },
       .cases = {{{4, 3}, {10, 3}}, {{2, 3, 4}, {2, 4}}, {{7}, {6, 7}}, {{0, 4}, {4, 4}}, {{18, 24}, {32, 24}}},
       .roundings = 3},
      {.name = "linear_pair:swiglu",
       .op =
           [](const auto& in) {
             const auto [a, b] = halves_of_linear(in);
             return swiglu(a, b);
           },
       .reference =
           [](const auto& in) { return product_of_halves(in, [](double a) { return a / (1 + std::exp(-a)); }); },
       .cases = {{{4, 3}, {10, 3}}, {{2, 3, 4}, {2, 4}}, {{7}, {6, 7}}, {{18, 24}, {32, 24}}},
       .roundings = 3},
      {.name = "linear:no_bias",
       .op = [](const auto& in) { return linear(in[0], in[1]); },
       .reference = linear_reference,
       .cases = {{{4, 3}, {5, 3}}, {{2, 3, 4}, {5, 4}}, {{1}, {1, 1}}, {{2, 0, 4}, {5, 4}}}},
  };
}

}  // namespace braid::test
