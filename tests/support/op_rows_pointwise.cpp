#include <cmath>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// Every rank, empty, one element, around the vector widths, more than one block of the CPU's loops.
const std::vector<std::vector<Shape>> kShapes{
    {{}}, {{0}}, {{1, 1}}, {{15}}, {{16}}, {{17}}, {{0, 3}}, {{3, 11}}, {{2, 1, 3, 1, 2, 2}}, {{3, 181}}};
const std::vector<std::vector<Shape>> kPairs{{{}, {}},
                                             {{15}, {15}},
                                             {{16, 33}, {16, 33}},
                                             {{3, 17}, {17}},
                                             {{17}, {3, 17}},
                                             {{3, 1}, {1, 4}},
                                             {{2, 3, 4}, {3, 1}},
                                             {{}, {2, 3}},
                                             {{2, 3}, {}},
                                             {{17}, {1}},
                                             {{0, 3}, {3}},
                                             {{1}, {0}},
                                             {{2, 1, 3, 1, 2, 2}, {1, 2, 3, 2, 1, 2}}};

OpRow unary(const char* name, Tensor (*op)(const Tensor&), double (*f)(double), double low = -2, double high = 2) {
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0]); },
          .reference = [f](const auto& in) { return map(in[0], f); },
          .cases = kShapes,
          .low = low,
          .high = high,
          .gradient_tolerance = 1e-9};
}

// A second row on -120..120 for every function of one input whose row names no range of its own: it finds formulas that
// overflow although the result does not. (exp itself overflows.)
void add_extreme_rows(std::vector<OpRow>& table) {
  const OpRow plain{};
  for (size_t i = 0, count = table.size(); i < count; ++i) {
    OpRow row = table[i];
    if (row.cases != kShapes || row.low != plain.low || row.high != plain.high || row.name == "exp") continue;
    row.name += ":extreme";
    row.low = -120;
    row.high = 120;
    row.gradient_tolerance = 1e-5;  // larger values leave larger rounding errors in finite differences
    table.push_back(std::move(row));
  }
}

OpRow binary(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double (*f)(double, double), double low = -2,
             double high = 2) {
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0], in[1]); },
          .reference = [f](const auto& in) { return zip(in[0], in[1], f); },
          .cases = kPairs,
          .low = low,
          .high = high,
          .gradient_tolerance = 1e-8};
}

// +3 and -3 alternately: moves x away from y, above and below, so that no finite difference crosses the kink.
double turn(int64_t i) { return i % 2 == 0 ? 3 : -3; }
OpRow larger_or_smaller(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double (*f)(double, double)) {
  OpRow row = binary(name, op, f, -1, 1);
  row.op = [op](const auto& in) {
    std::vector<double> offsets;
    for (int64_t i = 0; i < in[0].numel(); ++i) offsets.push_back(turn(i));
    return op(add(in[0], from_vector(offsets, in[0].shape()).to(in[0].dtype()).to(in[0].device())), in[1]);
  };
  row.reference = [f](const auto& in) {
    Array moved = in[0];
    for (size_t i = 0; i < moved.values.size(); ++i) moved.values[i] += turn(static_cast<int64_t>(i));
    return zip(moved, in[1], f);
  };
  return row;
}

// f: one expression, of a Tensor and of a number.
template <class F>
OpRow operators(const char* name, F f) {
  return {.name = name,
          .op = [f](const auto& in) { return f(in[0]); },
          .reference = [f](const auto& in) { return map(in[0], f); },
          .cases = kShapes,
          .low = 0.1,
          .gradient_tolerance = 1e-9,
          .roundings = 6};
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double silu_of(double x) { return x * logistic(x); }
double gelu_of(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh_of(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

Tensor clamped(const Tensor& x) { return clamp(x, -0.5, 1); }
double clamp_of(double x) { return std::fmin(std::fmax(x, -0.5), 1); }

Tensor mask_of(const Tensor& ids) { return ids.to(DType::u8); }

// The uniform number that dropout draws for element i, from the definition.
double drawn(size_t i, RandomKey key) { return (std::floor(random_bits(i, key) / 512.0) + 0.5) / 8388608.0; }

OpRow masked(const char* name, AttentionMask v, std::vector<std::vector<Shape>> cases) {
  return {.name = name,
          .op = [v](const auto& in) { return mask_scores(in[0], v, -7); },
          .reference =
              [v](const auto& in) {
                Array y = in[0];
                int64_t queries = y.shape[-2], keys = y.shape[-1];
                for (int64_t i = 0; i < numel(y.shape); ++i) {
                  int64_t query = i / keys % queries + v.offset, key = i % keys;
                  bool included = !v.causal || (key <= query && (v.window == 0 || key > query - v.window));
                  if (!included) y.values[static_cast<size_t>(i)] = -7;
                }
                return y;
              },
          .cases = std::move(cases),
          .gradient_tolerance = 1e-9};
}

}  // namespace

std::vector<OpRow> pointwise_rows() {
  std::vector<OpRow> table{
      binary("add", add, [](double x, double y) { return x + y; }),
      binary("sub", sub, [](double x, double y) { return x - y; }),
      binary("mul", mul, [](double x, double y) { return x * y; }),
      binary(
          "div", div, [](double x, double y) { return x / y; }, 0.5, 2),
      larger_or_smaller("maximum", maximum, [](double x, double y) { return std::fmax(x, y); }),
      larger_or_smaller("minimum", minimum, [](double x, double y) { return std::fmin(x, y); }),
      binary("swiglu", swiglu, [](double x, double y) { return silu_of(x) * y; }),
      unary(
          "affine", [](const Tensor& x) { return affine(x, -1.5, 0.25); }, [](double x) { return -1.5 * x + 0.25; }),
      unary(
          "scale", [](const Tensor& x) { return scale(x, 2.5); }, [](double x) { return 2.5 * x; }),
      unary("neg", neg, [](double x) { return -x; }),
      operators("neg:operators", [](auto x) { return -(2 * x - 3) * 0.5 + 1 - (1 - x / 4); }),
      operators("reciprocal:operators", [](auto x) { return 1 / (0.5 + x); }),
      unary("exp", exp, std::exp),
      unary("log", log, std::log, 0.3, 4),
      unary("sqrt", sqrt, std::sqrt, 0.3, 4),
      unary(
          "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.3, 4),
      unary("square", square, [](double x) { return x * x; }),
      unary(
          "reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.5, 4),
      unary(
          "reciprocal:negative", reciprocal, [](double x) { return 1 / x; }, -4, -0.5),
      unary("abs", abs, std::fabs, 0.1, 2),
      unary("abs:negative", abs, std::fabs, -2, -0.1),
      unary("tanh", tanh, std::tanh),
      unary("erf", erf, std::erf),
      unary("tanh:wide", tanh, std::tanh, -20, 20),
      unary("sigmoid", sigmoid, logistic),
      unary("sigmoid:wide", sigmoid, logistic, -80, 80),
      unary("silu", silu, silu_of),
      unary("silu:wide", silu, silu_of, -50, 50),
      unary("gelu", gelu, gelu_of),
      unary("gelu:wide", gelu, gelu_of, -8, 8),
      unary("gelu_tanh", gelu_tanh, gelu_tanh_of),
      unary("gelu_tanh:wide", gelu_tanh, gelu_tanh_of, -8, 8),
      unary(
          "relu", relu, [](double x) { return x > 0 ? x : 0; }, 0.1, 2),
      unary(
          "relu:negative", relu, [](double x) { return x > 0 ? x : 0; }, -2, -0.1),
      unary(
          "pow", [](const Tensor& x) { return pow(x, 2.5); }, [](double x) { return std::pow(x, 2.5); }, 0.3, 3),
      unary(
          "pow:negative", [](const Tensor& x) { return pow(x, -1); }, [](double x) { return 1 / x; }, 0.5, 3),
      unary(
          "pow:square", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }, -2, 2),
      unary(
          "pow:cube", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }, -3, 3),
      unary("clamp", clamped, clamp_of, -0.4, 0.9),
      unary("clamp:below", clamped, clamp_of, -2, -0.6),
      unary("clamp:above", clamped, clamp_of, 1.1, 2),
      {.name = "cast",
       .op = [](const auto& in) { return cast(cast(in[0], DType::f64), in[0].dtype()); },
       .reference = [](const auto& in) { return in[0]; },
       .cases = kShapes},
      {.name = "to",
       .op = [](const auto& in) { return to(to(in[0], kCpu), in[0].device()); },
       .reference = [](const auto& in) { return in[0]; },
       .cases = kShapes},
      {.name = "masked_fill",
       .op = [](const auto& in) { return masked_fill(in[0], mask_of(in[1]), -3); },
       .reference =
           [](const auto& in) { return zip(in[0], in[1], [](double x, double m) { return m != 0 ? -3 : x; }); },
       .cases = {{{}, {}},
                 {{3, 17}, {3, 17}},
                 {{3, 17}, {17}},
                 {{2, 3, 4}, {3, 1}},
                 {{0, 3}, {3}},
                 {{3, 181}, {3, 181}},
                 {{2, 1, 3, 1, 2, 2}, {3, 1, 1, 2}}},
       .index_limits = {0, 2},
       .gradient_tolerance = 1e-9},
      masked("mask_scores", {}, {{{4, 4}}, {{1, 1}}, {{2, 3, 17}}, {{2, 1, 5, 3}}, {{0, 4}}, {{4, 0}}, {{2, 700}}}),
      masked("mask_scores:window", {.window = 2}, {{{5, 5}}, {{2, 3, 7}}, {{3, 2}}}),
      masked("mask_scores:offset", {.window = 3, .offset = 4}, {{{3, 7}}, {{2, 1, 5}}, {{2, 3}}}),
      masked("mask_scores:before", {.offset = -2}, {{{4, 4}}}),
      masked("mask_scores:all", {.causal = false}, {{{3, 5}}}),
      {.name = "dropout",
       .op =
           [](const auto& in) {
             return dropout(in[0], 0.25, {5, 6});
           },
       .reference =
           [](const auto& in) {
             Array y = in[0];
             for (size_t i = 0; i < y.values.size(); ++i)
               y.values[i] = drawn(i, {5, 6}) > 0.25 ? y.values[i] / 0.75 : 0;
             return y;
           },
       .cases = kShapes,
       .gradient_tolerance = 1e-9},
      {.name = "dropout:none",
       .op =
           [](const auto& in) {
             return scale(dropout(in[0], 0, {5, 6}), 2);
           },
       .reference = [](const auto& in) { return map(in[0], [](double x) { return 2 * x; }); },
       .cases = {{{3, 5}}}},
  };
  add_extreme_rows(table);
  return table;
}

}  // namespace braid::test
