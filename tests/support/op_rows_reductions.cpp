// Rows of autograd/reductions.h, scans.h and order.h. References go over one axis, element by element.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

using Line = std::vector<double>;

// f of each line of x along the axis; the axis becomes what f returns, or goes where drop.
Array along(const Array& x, int axis, bool drop, const std::function<Line(const Line&)>& f) {
  const int a = axis < 0 ? axis + x.shape.rank() : axis;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < a; ++i) outer *= x.shape[i];
  for (int i = a + 1; i < x.shape.rank(); ++i) inner *= x.shape[i];
  const int64_t n = x.shape[a];
  const auto m = static_cast<int64_t>(f(Line(static_cast<size_t>(n), 1)).size());
  Array y;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (i != a || !drop) y.shape.push_back(i == a ? m : x.shape[i]);
  y.values.resize(static_cast<size_t>(outer * m * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      Line line;
      for (int64_t k = 0; k < n; ++k) line.push_back(x.values[static_cast<size_t>((o * n + k) * inner + i)]);
      const Line found = f(line);
      for (int64_t k = 0; k < m; ++k)
        y.values[static_cast<size_t>((o * m + k) * inner + i)] = found[static_cast<size_t>(k)];
    }
  return y;
}

using Fold = std::function<double(const Line&)>;
Array reduced(const Array& x, int axis, const Fold& f) {
  return along(x, axis, true, [&](const Line& line) { return Line{f(line)}; });
}
Array reduced_all(const Array& x, const Fold& f) { return {Shape{}, {f(x.values)}}; }
// Axes 0 and 2 of (a, b, c) -> (b).
Array reduced_outer(const Array& x, const Fold& f) {
  Array y{{x.shape[1]}, {}};
  for (int64_t b = 0; b < x.shape[1]; ++b) {
    Line line;
    for (int64_t a = 0; a < x.shape[0]; ++a)
      for (int64_t c = 0; c < x.shape[2]; ++c)
        line.push_back(x.values[static_cast<size_t>((a * x.shape[1] + b) * x.shape[2] + c)]);
    y.values.push_back(f(line));
  }
  return y;
}

double product(const Line& line) { return std::accumulate(line.begin(), line.end(), 1.0, std::multiplies<>()); }
double total(const Line& line) { return std::accumulate(line.begin(), line.end(), 0.0); }
double largest(const Line& line) { return *std::max_element(line.begin(), line.end()); }
double smallest(const Line& line) { return *std::min_element(line.begin(), line.end()); }
double truths(const Line& line) {
  return static_cast<double>(std::count_if(line.begin(), line.end(), [](double v) { return v != 0; }));
}
double log_total(const Line& line) {
  double sum = 0;
  for (double v : line) sum += std::exp(v);
  return std::log(sum);
}
Fold power_norm(double p) {
  return [p](const Line& line) {
    double sum = 0;
    for (double v : line) sum += std::pow(std::fabs(v), p);
    return std::pow(sum, 1 / p);
  };
}
double deviation(const Line& line) {
  const auto n = static_cast<double>(line.size());
  double squares = 0;
  for (double v : line) squares += (v - total(line) / n) * (v - total(line) / n);
  return std::sqrt(squares / (n - 1));
}
Fold between(double q) {
  return [q](Line line) {
    std::sort(line.begin(), line.end());
    const double at = q * static_cast<double>(line.size() - 1);
    const auto i = static_cast<size_t>(at);
    return i + 1 == line.size() ? line[i] : line[i] + (line[i + 1] - line[i]) * (at - static_cast<double>(i));
  };
}
std::function<Line(const Line&)> running(std::function<double(double, double)> f) {
  return [f](const Line& line) {
    Line y = line;
    for (size_t i = 1; i < y.size(); ++i) y[i] = f(y[i - 1], y[i]);
    return y;
  };
}

using Op = std::function<Tensor(const Tensor&)>;
OpRow one(const char* name, Op op, std::function<Array(const Array&)> reference,
          std::vector<std::vector<Shape>> cases) {
  return {.name = name,
          .op = [=](const auto& in) { return op(in[0]); },
          .reference = [=](const auto& in) { return reference(in[0]); },
          .cases = std::move(cases)};
}
// The inputs are elements between which no finite difference changes the order.
OpRow apart(const char* name, Op op, std::function<Array(const Array&)> reference,
            std::vector<std::vector<Shape>> cases) {
  OpRow row = one(
      name, [=](const Tensor& x) { return op(spread(x)); }, [=](const Array& x) { return reference(spread(x)); },
      std::move(cases));
  row.low = -1;
  row.high = 1;
  row.roundings = 2;  // spread() rounds too
  return row;
}
// The input is i64 from 0 to 2.
OpRow counted(const char* name, Op op, std::function<Array(const Array&)> reference) {
  OpRow row = one(name, std::move(op), std::move(reference), {{{2, 3, 4}}, {{1, 1, 1}}, {{0, 3, 2}}, {{5, 2, 33}}});
  row.index_limits = {3};
  row.differentiable = false;
  return row;
}

const std::vector<std::vector<Shape>> kLines{{{3, 5}}, {{4}}, {{2, 3, 4}}, {{1, 1}}, {{2, 33}}};
const std::vector<std::vector<Shape>> kBoxes{{{2, 3, 4}}, {{1, 2, 1}}, {{3, 1, 2}}};

std::vector<OpRow> integer_rows() {
  const auto is_any = [](const Line& line) { return truths(line) > 0 ? 1.0 : 0.0; };
  const auto is_all = [](const Line& line) { return truths(line) == static_cast<double>(line.size()) ? 1.0 : 0.0; };
  return {
      counted(
          "any", [](const Tensor& x) { return any(x); }, [=](const Array& x) { return reduced_all(x, is_any); }),
      counted(
          "any:axis", [](const Tensor& x) { return any(x, 1); }, [=](const Array& x) { return reduced(x, 1, is_any); }),
      counted(
          "all:axes",
          [](const Tensor& x) {
            return all(x, {0, 2});
          },
          [=](const Array& x) { return reduced_outer(x, is_all); }),
      counted(
          "count_nonzero", [](const Tensor& x) { return count_nonzero(x, -1); },
          [](const Array& x) { return reduced(x, -1, truths); }),
      counted(
          "sum:i64", [](const Tensor& x) { return sum(x, 0); }, [](const Array& x) { return reduced(x, 0, total); }),
      counted(
          "sum:u8",
          [](const Tensor& x) {
            return sum(x.to(DType::u8), {0, 2});
          },
          [](const Array& x) { return reduced_outer(x, total); }),
      counted(
          "prod:i32", [](const Tensor& x) { return prod(x.to(DType::i32), -1); },
          [](const Array& x) { return reduced(x, -1, product); }),
      counted(
          "cumsum:u8", [](const Tensor& x) { return cumsum(x.to(DType::u8), 1); },
          [](const Array& x) { return along(x, 1, false, running(std::plus<>())); }),
      counted(
          "cummax:i32", [](const Tensor& x) { return cummax(x.to(DType::i32), 1).values; },
          [](const Array& x) {
            return along(x, 1, false, running([](double a, double b) { return std::fmax(a, b); }));
          }),
      counted(
          "max:i64", [](const Tensor& x) { return max(x, 1); }, [](const Array& x) { return reduced(x, 1, largest); }),
      counted(
          "min:u8", [](const Tensor& x) { return min(x.to(DType::u8), 1); },
          [](const Array& x) { return reduced(x, 1, smallest); }),
      counted(
          "argmin", [](const Tensor& x) { return argmin(x, 1); },
          [](const Array& x) {
            return reduced(x, 1, [](const Line& line) {
              return static_cast<double>(std::min_element(line.begin(), line.end()) - line.begin());
            });
          }),
      counted(
          "sort:i32", [](const Tensor& x) { return sort(x.to(DType::i32), 1, true).values; },
          [](const Array& x) {
            return along(x, 1, false, [](Line line) {
              std::sort(line.rbegin(), line.rend());
              return line;
            });
          }),
  };
}

std::vector<OpRow> folded_rows() {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<OpRow> table{
      one(
          "prod", [](const Tensor& x) { return prod(x); }, [](const Array& x) { return reduced_all(x, product); },
          {{{}}, {{0}}, {{3, 2}}, {{7}}}),
      one(
          "prod:axis", [](const Tensor& x) { return prod(x, 0); },
          [](const Array& x) { return reduced(x, 0, product); }, {{{3, 5}}, {{4}}, {{0, 3}}, {{2, 3, 4}}, {{9, 17}}}),
      one(
          "prod:axes",
          [](const Tensor& x) {
            return prod(x, {0, -1});
          },
          [](const Array& x) { return reduced_outer(x, product); }, kBoxes),
      one(
          "stddev", [](const Tensor& x) { return stddev(x, -1); },
          [](const Array& x) { return reduced(x, -1, deviation); }, {{{3, 5}}, {{2, 3, 4}}, {{33}}}),
      one(
          "norm", [](const Tensor& x) { return norm(x); }, [](const Array& x) { return reduced_all(x, power_norm(2)); },
          kLines),
      one(
          "norm:1", [](const Tensor& x) { return norm(x, 1, 0); },
          [](const Array& x) { return reduced(x, 0, power_norm(1)); }, kLines),
      one(
          "norm:3",
          [](const Tensor& x) {
            return norm(x, 3, {0, 2});
          },
          [](const Array& x) { return reduced_outer(x, power_norm(3)); }, kBoxes),
      apart(
          "norm:inf", [=](const Tensor& x) { return norm(x, inf, 0); },
          [](const Array& x) { return reduced(map(x, [](double v) { return std::fabs(v); }), 0, largest); },
          {{{3, 5}}, {{4}}, {{2, 3, 4}}}),
      one(
          "logsumexp:all", [](const Tensor& x) { return logsumexp(x); },
          [](const Array& x) { return reduced_all(x, log_total); }, kLines),
      one(
          "logsumexp:axes",
          [](const Tensor& x) {
            return logsumexp(x, {2, 0});
          },
          [](const Array& x) { return reduced_outer(x, log_total); }, kBoxes),
      one(
          "softmin", [](const Tensor& x) { return softmin(x, 0); },
          [](const Array& x) {
            return along(x, 0, false, [](Line line) {
              const double sum =
                  std::accumulate(line.begin(), line.end(), 0.0, [](double s, double v) { return s + std::exp(-v); });
              for (double& v : line) v = std::exp(-v) / sum;
              return line;
            });
          },
          kLines),
      one(
          "nansum", [](const Tensor& x) { return nansum(x, 1); }, [](const Array& x) { return reduced(x, 1, total); },
          {{{3, 5}}, {{2, 0}}, {{2, 3, 4}}}),
      one(
          "nanmean", [](const Tensor& x) { return nanmean(x, 0); },
          [](const Array& x) {
            return reduced(x, 0, [](const Line& line) { return total(line) / static_cast<double>(line.size()); });
          },
          {{{3, 5}}, {{2, 3, 4}}}),
      apart(
          "max:all", [](const Tensor& x) { return max(x); }, [](const Array& x) { return reduced_all(x, largest); },
          {{{}}, {{3, 5}}, {{2, 3, 4}}}),
      apart(
          "min:axes",
          [](const Tensor& x) {
            return min(x, {0, 2});
          },
          [](const Array& x) { return reduced_outer(x, smallest); }, kBoxes),
      apart(
          "amax",
          [](const Tensor& x) {
            return amax(x, {0, 2});
          },
          [](const Array& x) { return reduced_outer(x, largest); }, kBoxes),
      apart(
          "amin", [](const Tensor& x) { return amin(x); }, [](const Array& x) { return reduced_all(x, smallest); },
          {{{}}, {{3, 5}}, {{2, 3, 4}}}),
      apart(
          "max_with_indices", [](const Tensor& x) { return max_with_indices(x, 0).values; },
          [](const Array& x) { return reduced(x, 0, largest); }, {{{3, 5}}, {{4}}, {{2, 3, 4}}}),
      apart(
          "min_with_indices", [](const Tensor& x) { return min_with_indices(x, -1).values; },
          [](const Array& x) { return reduced(x, -1, smallest); }, {{{3, 5}}, {{4}}, {{2, 3, 4}}}),
  };
  return table;
}

std::vector<OpRow> scan_rows() {
  const std::vector<std::vector<Shape>> kScans{{{3, 5}}, {{4}}, {{2, 3, 4}}, {{1, 1}}, {{0, 4}}, {{4, 0}}};
  std::vector<OpRow> table{
      one(
          "cumprod", [](const Tensor& x) { return cumprod(x); },
          [](const Array& x) { return along(x, -1, false, running(std::multiplies<>())); }, kScans),
      one(
          "cumprod:first", [](const Tensor& x) { return cumprod(x, 0); },
          [](const Array& x) { return along(x, 0, false, running(std::multiplies<>())); }, kScans),
      one(
          "logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, 0); },
          [](const Array& x) {
            return along(x, 0, false, running([](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }));
          },
          kScans),
      apart(
          "cummax", [](const Tensor& x) { return cummax(x, 0).values; },
          [](const Array& x) {
            return along(x, 0, false, running([](double a, double b) { return std::fmax(a, b); }));
          },
          kScans),
      apart(
          "cummin", [](const Tensor& x) { return cummin(x).values; },
          [](const Array& x) {
            return along(x, -1, false, running([](double a, double b) { return std::fmin(a, b); }));
          },
          kScans),
      one(
          "diff", [](const Tensor& x) { return diff(x, 2, 0); },
          [](const Array& x) {
            return along(x, 0, false, [](Line line) {
              for (int order = 0; order < 2; ++order) {
                for (size_t i = 0; i + 1 < line.size(); ++i) line[i] = line[i + 1] - line[i];
                if (!line.empty()) line.pop_back();
              }
              return line;
            });
          },
          {{{3, 5}}, {{5}}, {{1, 3}}, {{0, 2}}}),
  };
  table.back().roundings = 2;
  for (bool reverse : {false, true})
    table.push_back(
        {.name = reverse ? "linear_recurrence:reverse" : "linear_recurrence",
         .op = [=](const auto& in) { return linear_recurrence(in[0], in[1], -1, reverse); },
         .reference =
             [=](const auto& in) {
               const auto n = static_cast<size_t>(in[0].shape[-1]);
               Array y = in[1];
               for (size_t at = 0; n > 0 && at < y.values.size(); at += n)
                 for (size_t i = 1; i < n; ++i) {
                   const size_t to = at + (reverse ? n - 1 - i : i), from = reverse ? to + 1 : to - 1;
                   y.values[to] += in[0].values[to] * y.values[from];
                 }
               return y;
             },
         .cases = {{{3, 5}, {3, 5}}, {{4}, {4}}, {{1, 1}, {1, 1}}, {{0, 3}, {0, 3}}, {{2, 3, 4}, {2, 3, 4}}},
         .low = -1,
         .high = 1});
  return table;
}

std::vector<OpRow> sorted_rows_by_axis() {
  const std::vector<std::vector<Shape>> kSorts{{{3, 5}}, {{4}}, {{2, 3, 4}}, {{1, 1}}};
  const auto at = [](int64_t k) {
    return [k](Line line) {
      std::sort(line.begin(), line.end());
      return line[static_cast<size_t>(k)];
    };
  };
  return {
      apart(
          "sort:axis", [](const Tensor& x) { return sort(x, 0).values; },
          [](const Array& x) {
            return along(x, 0, false, [](Line line) {
              std::sort(line.begin(), line.end());
              return line;
            });
          },
          kSorts),
      apart(
          "topk:smallest", [](const Tensor& x) { return topk(x, 1, 0, false).values; },
          [](const Array& x) { return along(x, 0, false, [](const Line& line) { return Line{smallest(line)}; }); },
          kSorts),
      apart(
          "kthvalue", [](const Tensor& x) { return kthvalue(x, 2, 0).values; },
          [=](const Array& x) { return reduced(x, 0, at(1)); }, {{{3, 5}}, {{4}}, {{2, 3, 4}}}),
      apart(
          "median", [](const Tensor& x) { return median(x); },
          [](const Array& x) { return reduced_all(x, between(0.5)); }, {{{}}, {{3, 5}}, {{4}}}),
      apart(
          "median:axis", [](const Tensor& x) { return median(x, 0); },
          [](const Array& x) { return reduced(x, 0, between(0.5)); }, kSorts),
      apart(
          "quantile", [](const Tensor& x) { return quantile(x, 0.3, -1); },
          [](const Array& x) { return reduced(x, -1, between(0.3)); }, kSorts),
      {.name = "bincount",
       .op = [](const auto& in) { return bincount(in[0], in[1], 4); },
       .reference =
           [](const auto& in) {
             Array y{{4}, Line(4, 0)};
             for (size_t i = 0; i < in[0].values.size(); ++i)
               y.values[static_cast<size_t>(in[0].values[i])] += in[1].values[i];
             return y;
           },
       .cases = {{{7}, {7}}, {{3, 5}, {3, 5}}, {{0}, {0}}},
       .index_limits = {4, 0}},
  };
}

}  // namespace

std::vector<OpRow> reductions_rows() {
  std::vector<OpRow> table;
  for (auto family : {integer_rows, folded_rows, scan_rows, sorted_rows_by_axis})
    for (OpRow& row : family()) table.push_back(std::move(row));
  return table;
}

}  // namespace braid::test
