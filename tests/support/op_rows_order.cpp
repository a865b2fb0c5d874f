#include <algorithm>
#include <numeric>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

const std::vector<std::vector<Shape>> kOrderPairs{{{}, {}},
                                                  {{15}, {15}},
                                                  {{16, 33}, {16, 33}},
                                                  {{3, 17}, {17}},
                                                  {{17}, {3, 17}},
                                                  {{3, 1}, {1, 4}},
                                                  {{2, 3, 4}, {3, 1}},
                                                  {{}, {2, 3}},
                                                  {{0, 3}, {3}},
                                                  {{2, 1, 3, 1, 2, 2}, {1, 2, 3, 2, 1, 2}}};

using Comparison = Tensor (*)(const Tensor&, const Tensor&);
using Predicate = bool (*)(double, double);

// i64 from 0 to 2: many are equal.
OpRow compared(const std::string& name, Comparison op, Predicate holds) {
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0], in[1]); },
          .reference =
              [holds](const auto& in) {
                return zip(in[0], in[1], [=](double x, double y) { return double(holds(x, y)); });
              },
          .cases = kOrderPairs,
          .index_limits = {3, 3},
          .differentiable = false};
}

// Floats x against x + (0, 1 or -1), which are equal in a third of the places in every type.
OpRow compared_floats(const std::string& name, Comparison op, Predicate holds) {
  OpRow row = compared(name + ":floats", op, holds);
  row.op = [op](const auto& in) { return op(in[0], add(in[0], affine(in[1].to(in[0].dtype()), 1, -1))); };
  row.reference = [holds](const auto& in) {
    return zip(in[0], in[1], [=](double, double id) { return double(holds(1, id)); });
  };
  row.index_limits = {0, 3};
  row.cases = {{{}, {}},           {{15}, {15}},     {{16, 33}, {16, 33}},
               {{3, 17}, {3, 17}}, {{0, 3}, {0, 3}}, {{3, 181}, {3, 181}}};
  return row;
}

OpRow compared_with_number(const std::string& name, Tensor (*op)(const Tensor&, double), Predicate holds) {
  return {.name = name + ":number",
          .op = [op](const auto& in) { return op(in[0], 0.25); },
          .reference = [holds](const auto& in) { return map(in[0], [=](double x) { return double(holds(x, 0.25)); }); },
          .cases = {{{}}, {{17}}, {{3, 181}}},
          .differentiable = false};
}

// Shapes of x, y and the mask of where.
const std::vector<std::vector<Shape>> kChoices{
    {{}, {}, {}},       {{3, 17}, {3, 17}, {3, 17}}, {{3, 17}, {17}, {3, 1}},       {{}, {2, 5}, {5}},
    {{4}, {1}, {3, 4}}, {{0, 3}, {3}, {1}},          {{3, 181}, {3, 181}, {3, 181}}};

Array chosen_of(const std::vector<Array>& in) {
  auto chosen = zip(in[0], in[2], [](double x, double m) { return m != 0 ? x : 0; });
  auto other = zip(in[1], in[2], [](double y, double m) { return m != 0 ? 0 : y; });
  return zip(chosen, other, [](double x, double y) { return x + y; });
}

// The first k (all: -1) elements of each sorted row, or their indices; equal elements in the order of their indices.
Array sorted(const Array& x, bool descending, int64_t k, bool indices) {
  const int64_t n = x.shape[-1];
  if (k < 0) k = n;
  Array y{x.shape, {}};
  y.shape[-1] = k;
  for (int64_t begin = 0; n > 0 && begin < numel(x.shape); begin += n) {
    const double* row = &x.values[static_cast<size_t>(begin)];
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [=](int64_t i, int64_t j) { return descending ? row[i] > row[j] : row[i] < row[j]; });
    for (int64_t j = 0; j < k; ++j) {
      const int64_t at = order[static_cast<size_t>(j)];
      y.values.push_back(indices ? static_cast<double>(at) : row[at]);
    }
  }
  return y;
}

const std::vector<std::vector<Shape>> kRows{{{3, 5}}, {{2, 3, 4}}, {{1, 1}}, {{17}}, {{0, 4}}, {{4, 0}}};

OpRow sort_row(const char* name, bool descending) {
  return {.name = name,
          .op = [=](const auto& in) { return sort(spread(in[0]), descending).values; },
          .reference = [=](const auto& in) { return sorted(spread(in[0]), descending, -1, false); },
          .cases = kRows,
          .low = -1,  // at least 3 between two elements, up to 330: bf16 keeps their order
          .high = 1};
}

OpRow argsort_row(const char* name, bool descending) {
  return {.name = name,
          .op = [=](const auto& in) { return argsort(in[0], descending); },
          .reference = [=](const auto& in) { return sorted(in[0], descending, -1, true); },
          .cases = kRows,
          .differentiable = false};
}

}  // namespace

std::vector<OpRow> order_rows() {
  struct Rule {
    const char* name;
    Comparison op;
    Tensor (*with_number)(const Tensor&, double);
    Predicate holds;
  };
  const Rule rules[] = {{"eq", eq, eq, [](double x, double y) { return x == y; }},
                        {"ne", ne, ne, [](double x, double y) { return x != y; }},
                        {"lt", lt, lt, [](double x, double y) { return x < y; }},
                        {"le", le, le, [](double x, double y) { return x <= y; }},
                        {"gt", gt, gt, [](double x, double y) { return x > y; }},
                        {"ge", ge, ge, [](double x, double y) { return x >= y; }}};
  std::vector<OpRow> table;
  for (const Rule& rule : rules) {
    table.push_back(compared(rule.name, rule.op, rule.holds));
    table.push_back(compared_floats(rule.name, rule.op, rule.holds));
    table.push_back(compared_with_number(rule.name, rule.with_number, rule.holds));
  }
  for (DType type : {DType::i64, DType::i32, DType::u8})
    table.push_back({.name = "where:" + str(type),
                     .op = [=](const auto& in) { return where(in[2].to(DType::u8), in[0].to(type), in[1].to(type)); },
                     .reference = chosen_of,
                     .cases = kChoices,
                     .index_limits = {100, 100, 2},
                     .differentiable = false});
  table.push_back({.name = "where",
                   .op = [](const auto& in) { return where(in[2].to(DType::u8), in[0], in[1]); },
                   .reference = chosen_of,
                   .cases = kChoices,
                   .index_limits = {0, 0, 2},
                   .gradient_tolerance = 1e-9});
  table.push_back(sort_row("sort", false));
  table.push_back(sort_row("sort:descending", true));
  table.push_back(sort_row("sort:long", false));
  table.back().cases = {{{2, 33}}, {{2, 130}}};
  table.back().in_16_bit = false;  // spread() rounds twice there, and would make equal elements of some
  table.push_back(argsort_row("argsort", false));
  table.push_back(argsort_row("argsort:descending", true));
  table.push_back(argsort_row("argsort:long", true));
  table.back().cases = {{{2, 33}}, {{2, 130}}, {{1, 600}}};
  table.push_back({.name = "topk",
                   .op = [](const auto& in) { return topk(spread(in[0]), 3).values; },
                   .reference = [](const auto& in) { return sorted(spread(in[0]), true, 3, false); },
                   .cases = {{{3, 5}}, {{2, 3, 4}}, {{3}}, {{2, 40}}, {{0, 4}}},
                   .low = -1,
                   .high = 1});
  table.push_back({.name = "topk:indices",
                   .op = [](const auto& in) { return topk(in[0], 2).indices; },
                   .reference = [](const auto& in) { return sorted(in[0], true, 2, true); },
                   .cases = {{{3, 5}}, {{2, 33}}, {{2}}},
                   .differentiable = false});
  return table;
}

}  // namespace braid::test
