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
      {.name = "linear:no_bias",
       .op = [](const auto& in) { return linear(in[0], in[1]); },
       .reference = linear_reference,
       .cases = {{{4, 3}, {5, 3}}, {{2, 3, 4}, {5, 4}}, {{1}, {1, 1}}, {{2, 0, 4}, {5, 4}}}},
  };
}

}  // namespace braid::test
