#include <algorithm>
#include <cmath>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

void softmax_row(const double* x, double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i]);
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]) / sum;
}
void log_softmax_row(const double* x, double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i]);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - std::log(sum);
}

// f on every column of x (n, ...).
Array along_first(const Array& x, void (*f)(const double* x, double* y, int64_t n)) {
  const int64_t n = x.shape[0], columns = numel(x.shape) / n;
  Array y = x;
  std::vector<double> from(static_cast<size_t>(n)), to(from.size());
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < n; ++i) from[static_cast<size_t>(i)] = x.values[static_cast<size_t>(i * columns + c)];
    f(from.data(), to.data(), n);
    for (int64_t i = 0; i < n; ++i) y.values[static_cast<size_t>(i * columns + c)] = to[static_cast<size_t>(i)];
  }
  return y;
}

// eps is large on purpose: a wrong place for it would show, and rows of one element keep a slope.
constexpr double kEps = 0.05;

Array rms_norm_reference(const std::vector<Array>& in) {
  return rows(in[0], [&](const double* x, double* y, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
    for (int64_t i = 0; i < n; ++i) {
      y[i] = x[i] / std::sqrt(squares / static_cast<double>(n) + kEps) *
             (in.size() > 1 ? in[1].values[static_cast<size_t>(i)] : 1);
    }
  });
}

Array layer_norm_reference(const std::vector<Array>& in) {
  return rows(in[0], [&](const double* x, double* y, int64_t n) {
    double mean = 0, variance = 0, count = static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) mean += x[i] / count;
    for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / count;
    for (int64_t i = 0; i < n; ++i) {
      size_t k = static_cast<size_t>(i);
      y[i] = (x[i] - mean) / std::sqrt(variance + kEps) * (in.size() > 1 ? in[1].values[k] : 1) +
             (in.size() > 2 ? in[2].values[k] : 0);
    }
  });
}

// Both results of a norm of x + residual, one beside the other; the inputs are x, the residual and what the norm takes.
Tensor both(const SumAndNorm& r) { return concat({r.sum, r.y}, -1); }

template <class Norm>
auto both_of(Norm norm) {
  return [norm](const std::vector<Array>& in) {
    std::vector<Array> of_sum(in.begin() + 1, in.end());
    of_sum[0] = zip(in[0], in[1], [](double a, double b) { return a + b; });
    const Array &sum = of_sum[0], y = norm(of_sum);
    Array out = sum;
    const int64_t n = sum.shape[-1];
    out.shape[-1] = 2 * n;
    out.values.clear();
    for (auto row = sum.values.begin(), of_y = y.values.begin(); row != sum.values.end(); row += n, of_y += n) {
      out.values.insert(out.values.end(), row, row + n);
      out.values.insert(out.values.end(), of_y, of_y + n);
    }
    return out;
  };
}

// Angles of a table (batch, T, half), from a formula that op and reference share; the derivative requires the tables
// exact.
double angle(int64_t b, int64_t t, int64_t e) {
  return 0.3 * static_cast<double>(t + 1) + 0.7 * static_cast<double>(e) - 0.2 * static_cast<double>(b);
}

Tensor table(const Tensor& x, int64_t batch, int64_t half, double (*f)(double)) {
  std::vector<double> values;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < x.dim(1); ++t) {
      for (int64_t e = 0; e < half; ++e) values.push_back(f(angle(b, t, e)));
    }
  }
  return from_vector(values, {batch, x.dim(1), half}).to(accumulate_type(x.dtype())).to(x.device());
}

OpRow rope_row(const std::string& name, bool per_sample, int64_t left_over) {
  auto half = [left_over](int64_t d) { return (d - left_over) / 2; };
  return {.name = name,
          .op =
              [=](const auto& in) {
                int64_t batch = per_sample ? in[0].dim(0) : 1, h = half(in[0].dim(3));
                return rope(in[0], table(in[0], batch, h, std::cos), table(in[0], batch, h, std::sin));
              },
          .reference =
              [=](const auto& in) {
                Array y = in[0];
                int64_t T = y.shape[1], N = y.shape[2], d = y.shape[3], h = half(d);
                for (int64_t r = 0; r < y.shape[0] * T * N; ++r) {
                  for (int64_t e = 0; e < h; ++e) {
                    double a = angle(per_sample ? r / (T * N) : 0, r / N % T, e);
                    size_t i = static_cast<size_t>(r * d + e), j = i + static_cast<size_t>(h);
                    y.values[i] = in[0].values[i] * std::cos(a) - in[0].values[j] * std::sin(a);
                    y.values[j] = in[0].values[j] * std::cos(a) + in[0].values[i] * std::sin(a);
                  }
                }
                return y;
              },
          .cases = {{{2, 3, 2, 6}}, {{1, 1, 1, 4}}, {{3, 2, 4, 34}}, {{2, 0, 2, 6}}}};
}

// split_qkv of x (B, T, (N + 2 Nkv) d), with two weights behind it where `norm`. q, k and v one beside the other.
struct Heads {
  int64_t queries, keys, d, half;  // half: pairs that are rotated
  bool per_sample, norm;
  QkvSplit split(const std::vector<Tensor>& in) const {
    QkvSplit how{.heads = queries, .kv_heads = keys, .head_dim = d, .norm_eps = kEps};
    if (norm) how.q_norm = in[1], how.k_norm = in[2];
    const int64_t batch = per_sample ? in[0].dim(0) : 1;
    if (half > 0) how.cosine = table(in[0], batch, half, std::cos), how.sine = table(in[0], batch, half, std::sin);
    return how;
  }
};

Array split_by_loops(const std::vector<Array>& in, const Heads& h) {
  Array y = in[0];
  const int64_t T = y.shape[1], heads = h.queries + 2 * h.keys, d = h.d;
  for (int64_t r = 0; r < y.shape[0] * T * heads; ++r) {
    const int64_t head = r % heads, t = r / heads % T, b = h.per_sample ? r / heads / T : 0;
    if (head >= h.queries + h.keys) continue;
    double* const x = &y.values[static_cast<size_t>(r * d)];
    if (h.norm) {
      const Array row{{d}, std::vector<double>(x, x + d)}, n = rms_norm_reference({row, in[head < h.queries ? 1 : 2]});
      std::copy(n.values.begin(), n.values.end(), x);
    }
    for (int64_t e = 0; e < h.half; ++e) {
      const double a = angle(b, t, e), first = x[e], second = x[e + h.half];
      x[e] = first * std::cos(a) - second * std::sin(a);
      x[e + h.half] = second * std::cos(a) + first * std::sin(a);
    }
  }
  return y;
}

OpRow split_row(const std::string& name, const Heads& h) {
  OpRow row{.name = "split_qkv:" + name,
            .op =
                [h](const auto& in) {
                  const Qkv r = split_qkv(in[0], h.split(in));
                  const int64_t B = in[0].dim(0), T = in[0].dim(1);
                  const auto flat = [&](const Tensor& x) { return reshape(x, {B, T, x.dim(2) * h.d}); };
                  return concat({flat(r.q), flat(r.k), flat(r.v)}, 2);
                },
            .reference = [h](const auto& in) { return split_by_loops(in, h); }};
  const int64_t width = (h.queries + 2 * h.keys) * h.d;
  for (const Shape& shape : std::vector<Shape>{{2, 3, width}, {1, 1, width}, {2, 0, width}}) {
    row.cases.push_back({shape});
    if (h.norm) row.cases.back().insert(row.cases.back().end(), {Shape{h.d}, Shape{h.d}});
  }
  row.roundings = 2;
  return row;
}

const std::vector<std::vector<Shape>> kRowShapes{{{3, 5}}, {{2, 3, 7}}, {{1, 1}},  {{0, 4}},
                                                 {{4, 0}}, {{33}},      {{2, 129}}};

// The row shapes with `vectors` further inputs of the last axis' size, after a residual if there is one.
// The same of x alone.
template <class Norm>
auto both_alone(Norm norm) {
  return [norm](std::vector<Array> in) {
    in.insert(in.begin() + 1, map(in[0], [](double) { return 0.0; }));
    return both_of(norm)(in);
  };
}

std::vector<std::vector<Shape>> with_vectors(int vectors, bool residual = false) {
  std::vector<std::vector<Shape>> cases = kRowShapes;
  cases.push_back({{70, 3}});  // more than one block of partial sums
  for (std::vector<Shape>& shapes : cases) {
    if (residual) shapes.push_back(shapes[0]);
    for (int v = 0; v < vectors; ++v) shapes.push_back({shapes[0][-1]});
  }
  return cases;
}

}  // namespace

std::vector<OpRow> row_rows() {
  return {
      {.name = "softmax",
       .op = [](const auto& in) { return softmax(in[0]); },
       .reference = [](const auto& in) { return rows(in[0], softmax_row); },
       .cases = kRowShapes},
      {.name = "log_softmax",
       .op = [](const auto& in) { return log_softmax(in[0]); },
       .reference = [](const auto& in) { return rows(in[0], log_softmax_row); },
       .cases = kRowShapes},
      {.name = "softmax:first",
       .op = [](const auto& in) { return softmax(in[0], 0); },
       .reference = [](const auto& in) { return along_first(in[0], softmax_row); },
       .cases = {{{5, 3}}, {{4, 2, 3}}, {{17}}}},
      {.name = "log_softmax:first",
       .op = [](const auto& in) { return log_softmax(in[0], 0); },
       .reference = [](const auto& in) { return along_first(in[0], log_softmax_row); },
       .cases = {{{5, 3}}, {{4, 2, 3}}, {{17}}}},
      {.name = "rms_norm",
       .op = [](const auto& in) { return rms_norm(in[0], in[1], kEps); },
       .reference = rms_norm_reference,
       .cases = with_vectors(1)},
      {.name = "rms_norm:no_weight",
       .op = [](const auto& in) { return rms_norm(in[0], {}, kEps); },
       .reference = rms_norm_reference,
       .cases = with_vectors(0)},
      {.name = "layer_norm",
       .op = [](const auto& in) { return layer_norm(in[0], in[1], in[2], kEps); },
       .reference = layer_norm_reference,
       .cases = with_vectors(2)},
      {.name = "layer_norm:no_bias",
       .op = [](const auto& in) { return layer_norm(in[0], in[1], {}, kEps); },
       .reference = layer_norm_reference,
       .cases = with_vectors(1)},
      {.name = "layer_norm:plain",
       .op = [](const auto& in) { return layer_norm(in[0], {}, {}, kEps); },
       .reference = layer_norm_reference,
       .cases = with_vectors(0)},
      {.name = "add_rms_norm",
       .op = [](const auto& in) { return both(add_rms_norm(in[0], in[1], in[2], kEps)); },
       .reference = both_of(rms_norm_reference),
       .cases = with_vectors(1, true),
       .roundings = 2},
      {.name = "add_rms_norm:no_weight",
       .op = [](const auto& in) { return both(add_rms_norm(in[0], in[1], {}, kEps)); },
       .reference = both_of(rms_norm_reference),
       .cases = with_vectors(0, true),
       .roundings = 2},
      {.name = "add_rms_norm:norm_alone",
       .op = [](const auto& in) { return add_rms_norm(in[0], in[1], in[2], kEps).y; },
       .reference =
           [](const auto& in) {
             return rms_norm_reference({zip(in[0], in[1], [](double a, double b) { return a + b; }), in[2]});
           },
       .cases = with_vectors(1, true),
       .roundings = 2},
      {.name = "add_rms_norm:no_residual",
       .op = [](const auto& in) { return both(add_rms_norm(in[0], {}, in[1], kEps)); },
       .reference = both_alone(rms_norm_reference),
       .cases = with_vectors(1)},
      {.name = "add_layer_norm:no_residual",
       .op = [](const auto& in) { return both(add_layer_norm(in[0], {}, in[1], in[2], kEps)); },
       .reference = both_alone(layer_norm_reference),
       .cases = with_vectors(2)},
      {.name = "add_layer_norm",
       .op = [](const auto& in) { return both(add_layer_norm(in[0], in[1], in[2], in[3], kEps)); },
       .reference = both_of(layer_norm_reference),
       .cases = with_vectors(2, true),
       .roundings = 2},
      {.name = "add_layer_norm:plain",
       .op = [](const auto& in) { return both(add_layer_norm(in[0], in[1], {}, {}, kEps)); },
       .reference = both_of(layer_norm_reference),
       .cases = with_vectors(0, true),
       .roundings = 2},
      rope_row("rope", false, 0),
      rope_row("rope:per_sample_partial", true, 2),
      split_row("norm_and_rotation", {2, 2, 6, 3, false, true}),
      split_row("grouped", {4, 1, 8, 4, true, false}),
      split_row("partly_rotated", {2, 2, 10, 2, false, true}),
      split_row("copy", {3, 1, 5, 0, false, false}),
  };
}

}  // namespace braid::test
