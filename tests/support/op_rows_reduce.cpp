#include <cmath>
#include <numeric>
#include <set>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// Folds x over `axes` (all when empty) with f, starting from the first element met; nothing met gives `none`.
Array folded(const Array& x, const std::set<int>& axes, bool keep, double none,
             const std::function<double(double, double)>& f) {
  Shape kept, strides_shape;
  for (int a = 0; a < x.shape.rank(); ++a) {
    bool reduced = axes.count(a) == 1;
    strides_shape.push_back(reduced ? 1 : x.shape[a]);
    if (!reduced || keep) kept.push_back(reduced ? 1 : x.shape[a]);
  }
  Strides sx = contiguous_strides(x.shape), sy = contiguous_strides(strides_shape);
  Array y{kept, std::vector<double>(static_cast<size_t>(numel(kept)), none)};
  std::vector<bool> met(y.values.size());
  for (int64_t i = 0; i < numel(x.shape); ++i) {
    int64_t j = 0;
    for (int a = 0; a < x.shape.rank(); ++a) {
      if (axes.count(a) == 0) j += i / sx[a] % x.shape[a] * sy[a];
    }
    size_t at = static_cast<size_t>(j);
    y.values[at] = met[at] ? f(y.values[at], x.values[static_cast<size_t>(i)]) : x.values[static_cast<size_t>(i)];
    met[at] = true;
  }
  return y;
}

double plus(double a, double b) { return a + b; }
Array summed(const Array& x, const std::set<int>& axes, bool keep) { return folded(x, axes, keep, 0, plus); }
Array averaged(const Array& x, const std::set<int>& axes, bool keep) {
  Array y = summed(x, axes, keep);
  for (double& v : y.values) v *= static_cast<double>(y.values.size()) / static_cast<double>(x.values.size());
  return y;
}
std::set<int> every_axis(const Array& x) {
  std::set<int> axes;
  for (int a = 0; a < x.shape.rank(); ++a) axes.insert(a);
  return axes;
}

Array variance(const Array& x, const std::set<int>& axes, int64_t correction, bool keep) {
  const Array mean = averaged(x, axes, true);
  Array squares = zip(x, mean, [](double a, double m) { return (a - m) * (a - m); });
  Array y = summed(squares, axes, keep);
  for (double& v : y.values)
    v /= static_cast<double>(x.values.size() / y.values.size()) - static_cast<double>(correction);
  return y;
}

Array log_sum_exp(const Array& x, int axis, bool keep) {
  return map(summed(map(x, [](double v) { return std::exp(v); }), {axis}, keep), [](double v) { return std::log(v); });
}

OpRow sum_row(const char* name, std::initializer_list<int> axes, std::set<int> counted, bool keep,
              std::vector<std::vector<Shape>> cases) {
  std::vector<int> list(axes);
  return {.name = name,
          .op = [=](const auto& in) { return sum(in[0], list, keep); },
          .reference = [=](const auto& in) { return summed(in[0], counted, keep); },
          .cases = std::move(cases)};
}

double larger(double a, double b) { return std::fmax(a, b); }
double smaller(double a, double b) { return std::fmin(a, b); }

OpRow product_row(const char* name, int axis, std::vector<std::vector<Shape>> cases) {
  return {.name = name,
          .op = [=](const auto& in) { return sum_product(in[0], in[1], {axis}); },
          .reference =
              [=](const auto& in) {
                return summed(zip(in[0], in[1], [](double x, double y) { return x * y; }), {axis}, true);
              },
          .cases = std::move(cases),
          .gradient_tolerance = 1e-8};
}

}  // namespace

std::vector<OpRow> reduce_rows() {
  return {
      {.name = "sum",
       .op = [](const auto& in) { return sum(in[0]); },
       .reference = [](const auto& in) { return summed(in[0], every_axis(in[0]), false); },
       .cases = {{{}}, {{0}}, {{1, 1}}, {{15}}, {{33}}, {{3, 7}}, {{2, 1, 3, 1, 2, 2}}},
       .low = 0.5},
      sum_row("sum:first", {0}, {0}, false, {{{3, 5}}, {{4}}, {{0, 3}}, {{3, 0}}, {{2, 3, 4}}, {{9, 17}}, {{2, 300}}}),
      sum_row("sum:last", {-1}, {1}, true, {{{3, 5}}, {{3, 17}}, {{2, 33}}, {{0, 3}}, {{3, 0}}, {{3, 1}}}),
      sum_row("sum:outer", {0, 2}, {0, 2}, false, {{{2, 3, 4}}, {{3, 1, 5}}, {{2, 3, 2, 2, 1, 3}}}),
      sum_row("sum:inner", {1, 2}, {1, 2}, true, {{{2, 3, 4}}, {{4, 2, 3, 5}}}),
      {.name = "mean",
       .op = [](const auto& in) { return mean(in[0]); },
       .reference = [](const auto& in) { return averaged(in[0], every_axis(in[0]), false); },
       .cases = {{{}}, {{1, 1}}, {{17}}, {{3, 7}}},
       .low = 0.5},
      {.name = "mean:axes",
       .op =
           [](const auto& in) {
             return mean(in[0], {-1, 0});
           },
       .reference =
           [](const auto& in) {
             return averaged(in[0], {0, in[0].shape.rank() - 1}, false);
           },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{2, 3, 1, 2, 2, 3}}}},
      {.name = "var",
       .op = [](const auto& in) { return var(in[0]); },
       .reference = [](const auto& in) { return variance(in[0], every_axis(in[0]), 1, false); },
       .cases = {{{17}}, {{3, 7}}, {{2, 1, 3, 1, 2, 2}}},
       .f32_tolerance = 4e-6},
      {.name = "var:axes",
       .op =
           [](const auto& in) {
             return var(in[0], {-1, 0}, 0, true);
           },
       .reference =
           [](const auto& in) {
             return variance(in[0], {0, in[0].shape.rank() - 1}, 0, true);
           },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{1, 1}}, {{9, 33}}},
       .f32_tolerance = 4e-6},
      {.name = "var:last",
       .op = [](const auto& in) { return var(in[0], {-1}); },
       .reference = [](const auto& in) { return variance(in[0], {in[0].shape.rank() - 1}, 1, false); },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{0, 3}}, {{2, 33}}},
       .f32_tolerance = 4e-6},
      {.name = "logsumexp",
       .op = [](const auto& in) { return logsumexp(in[0], -1); },
       .reference = [](const auto& in) { return log_sum_exp(in[0], in[0].shape.rank() - 1, false); },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{1}}, {{2, 300}}, {{0, 3}}}},
      {.name = "logsumexp:first",
       .op = [](const auto& in) { return logsumexp(in[0], 0, true); },
       .reference = [](const auto& in) { return log_sum_exp(in[0], 0, true); },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{17, 3}}},
       .low = -40,
       .high = 40},
      {.name = "cumsum",
       .op = [](const auto& in) { return cumsum(in[0]); },
       .reference =
           [](const auto& in) {
             return rows(in[0], [](const double* x, double* y, int64_t n) { std::partial_sum(x, x + n, y); });
           },
       .cases = {{{3, 5}}, {{1}}, {{2, 3, 4}}, {{2, 600}}, {{0, 3}}, {{3, 0}}},
       .low = -1,
       .f32_tolerance = 4e-6},
      {.name = "cumsum:first",
       .op = [](const auto& in) { return cumsum(in[0], 0); },
       .reference =
           [](const auto& in) {
             Array y = in[0];
             const size_t step = y.values.size() / static_cast<size_t>(y.shape[0]);
             for (size_t i = step; i < y.values.size(); ++i) y.values[i] += y.values[i - step];
             return y;
           },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{17}}}},
      {.name = "max",
       .op = [](const auto& in) { return max(spread(in[0]), 1, true); },
       .reference = [](const auto& in) { return folded(spread(in[0]), {1}, true, 0, larger); },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{3, 1}}, {{2, 17}}, {{0, 3}}, {{2, 33, 3}}}},
      {.name = "max:drop",
       .op = [](const auto& in) { return max(spread(in[0]), 0); },
       .reference = [](const auto& in) { return folded(spread(in[0]), {0}, false, 0, larger); },
       .cases = {{{3, 5}}, {{4}}, {{3, 2, 2}}}},
      {.name = "min",
       .op = [](const auto& in) { return min(spread(in[0]), -1); },
       .reference = [](const auto& in) { return folded(spread(in[0]), {in[0].shape.rank() - 1}, false, 0, smaller); },
       .cases = {{{3, 5}}, {{2, 3, 4}}, {{1}}, {{2, 17}}, {{0, 3}}}},
      {.name = "sum_to",
       .op =
           [](const auto& in) {
             return sum_to(in[0], {3, 1});
           },
       .reference =
           [](const auto& in) {
             std::set<int> axes;
             int extra = in[0].shape.rank() - 2;
             for (int a = 0; a < extra; ++a) axes.insert(a);
             axes.insert(extra + 1);
             return Array{{3, 1}, summed(in[0], axes, false).values};
           },
       .cases = {{{3, 5}}, {{3, 1}}, {{2, 3, 4}}, {{2, 1, 3, 17}}, {{0, 3, 4}}}},
      {.name = "sum_to:scalar",
       .op = [](const auto& in) { return sum_to(in[0], {}); },
       .reference = [](const auto& in) { return summed(in[0], every_axis(in[0]), false); },
       .cases = {{{3, 5}}, {{}}}},
      // The composition of attention heads: x (B, G, 1, M, T, S) with weights per key (.., 1, S) and per query (.., T,
      // 1).
      product_row("sum_product:heads", 3,
                  {{{2, 2, 1, 4, 3, 5}, {2, 2, 2, 4, 1, 5}},
                   {{1, 2, 1, 3, 4, 17}, {1, 2, 2, 3, 4, 1}},
                   {{1, 1, 1, 5, 1, 33}, {1, 1, 2, 5, 1, 33}}}),
      product_row("sum_product:rank", 2,
                  {{{2, 1, 2, 1, 3, 5}, {2, 1, 2, 4, 1, 5}}, {{1, 2, 2, 1, 3, 17}, {1, 2, 2, 4, 3, 1}}}),
      product_row("sum_product:queries", 4, {{{1, 2, 2, 1, 5, 4}, {1, 2, 1, 3, 5, 4}}}),
      product_row("sum_product:keys", 5, {{{1, 2, 2, 1, 3, 17}, {1, 2, 1, 3, 3, 17}}}),
      product_row("sum_product", 0,
                  {{{7}, {7}},
                   {{7, 3}, {7, 1}},
                   {{7, 1}, {7, 3}},
                   {{7, 3}, {1, 3}},
                   {{7, 3}, {}},
                   {{1}, {1}},
                   {{0, 3}, {3}},
                   {{3, 0}, {0}},
                   {{5, 300}, {5, 300}}}),
      {.name = "argmax",
       .op = [](const auto& in) { return argmax(in[0]); },
       .reference =
           [](const auto& in) {
             Shape shape;
             int64_t n = in[0].shape[-1];
             for (int a = 0; a + 1 < in[0].shape.rank(); ++a) shape.push_back(in[0].shape[a]);
             Array y{shape, {}};
             for (int64_t r = 0; r < numel(shape); ++r) {
               int64_t best = 0;
               for (int64_t i = 1; i < n; ++i) {
                 if (in[0].values[static_cast<size_t>(r * n + i)] > in[0].values[static_cast<size_t>(r * n + best)])
                   best = i;
               }
               y.values.push_back(static_cast<double>(best));
             }
             return y;
           },
       .cases = {{{5}}, {{3, 7}}, {{2, 3, 600}}, {{0, 3}}, {{4, 1}}},
       .differentiable = false},
  };
}

}  // namespace braid::test
