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
const std::vector<std::vector<Shape>> kRowShapes{{{3, 5}}, {{2, 3, 7}}, {{1, 1}},  {{0, 4}},
                                                 {{4, 0}}, {{33}},      {{2, 129}}};
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
  };
}

}  // namespace braid::test
