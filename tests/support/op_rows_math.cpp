// Rows of autograd/math.h.
#include "braid/autograd/math.h"

#include <cmath>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

using Function = Tensor (*)(const Tensor&);
using Pair = Tensor (*)(const Tensor&, const Tensor&);

const std::vector<std::vector<Shape>> kOne{{{}}, {{5}}, {{3, 7}}, {{0, 3}}, {{2, 2, 3}}, {{600}}};
const std::vector<std::vector<Shape>> kTwo{{{}, {}},         {{5}, {5}},    {{3, 4}, {4}},
                                           {{3, 1}, {1, 4}}, {{0, 3}, {3}}, {{600}, {600}}};

OpRow one(const std::string& name, std::function<Tensor(const Tensor&)> op, double (*reference)(double),
          double low = -2, double high = 2) {
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0]); },
          .reference = [reference](const auto& in) { return map(in[0], reference); },
          .cases = kOne,
          .low = low,
          .high = high,
          .gradient_tolerance = 1e-6};
}
OpRow two(const std::string& name, Pair op, double (*reference)(double, double), double low = -2, double high = 2) {
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0], in[1]); },
          .reference = [reference](const auto& in) { return zip(in[0], in[1], reference); },
          .cases = kTwo,
          .low = low,
          .high = high,
          .gradient_tolerance = 1e-6};
}

// Small integers, many of them 0 or equal.
OpRow mask_of_one(const std::string& name, Function op, double (*reference)(double)) {
  OpRow row = one(name, op, reference);
  row.index_limits = {3};
  row.differentiable = false;
  return row;
}
OpRow mask_of_two(const std::string& name, Pair op, double (*reference)(double, double)) {
  OpRow row = two(name, op, reference);
  row.index_limits = {3, 3};
  row.differentiable = false;
  return row;
}

// With steps or kinks: few elements, none of which lies within a finite difference of one.
OpRow with_kinks(OpRow row) {
  row.cases.pop_back();
  return row;
}
// Rounding to 16 bits, too, moves a value over a step.
OpRow exact(OpRow row) {
  row.in_16_bit = false;
  return with_kinks(std::move(row));
}

double softplus_of(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

std::vector<OpRow> functions_of_one() {
  std::vector<OpRow> table{
      one("sin", sin, std::sin, -7, 7),
      one("cos", cos, std::cos, -7, 7),
      one("tan", tan, std::tan, -1.2, 1.2),
      one("asin", asin, std::asin, -0.9, 0.9),
      one("acos", acos, std::acos, -0.9, 0.9),
      one("atan", atan, std::atan),
      one("sinh", sinh, std::sinh),
      one("cosh", cosh, std::cosh),
      one("asinh", asinh, std::asinh),
      one("acosh", acosh, std::acosh, 1.2, 5),
      one("atanh", atanh, std::atanh, -0.8, 0.8),
      one(
          "deg2rad", deg2rad, [](double x) { return x * M_PI / 180; }, -400, 400),
      one("rad2deg", rad2deg, [](double x) { return x * 180 / M_PI; }),
      one("erfc", erfc, std::erfc),
      one("exp2", exp2, std::exp2),
      one("expm1", expm1, std::expm1),
      one("log1p", log1p, std::log1p, -0.5, 3),
      one("log2", log2, std::log2, 0.2, 4),
      one("log10", log10, std::log10, 0.2, 4),
      one(
          "pow:base", [](const Tensor& x) { return pow(3, x); }, [](double x) { return std::pow(3, x); }),
      exact(one("floor", floor, std::floor, -5, 5)),
      exact(one("ceil", ceil, std::ceil, -5, 5)),
      exact(one("trunc", trunc, std::trunc, -5, 5)),
      exact(one("round", round, std::nearbyint, -5, 5)),
      exact(one(
          "frac", frac, [](double x) { return x - std::trunc(x); }, -5, 5)),
      exact(one("sign", sign, [](double x) { return double((x > 0) - (x < 0)); })),
      one("softplus", softplus, softplus_of, -5, 5),
      one(
          "log_sigmoid", log_sigmoid, [](double x) { return -softplus_of(-x); }, -5, 5),
      one(
          "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); },
          [](double x) { return x < 0 ? 0.1 * x : x; }),
      one(
          "elu", [](const Tensor& x) { return elu(x, 2); }, [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }),
      one(
          "celu", [](const Tensor& x) { return celu(x, 2); },
          [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }),
      one("selu", selu, [](double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x); }),
      one("mish", mish, [](double x) { return x * std::tanh(softplus_of(x)); }),
      one(
          "softcap", [](const Tensor& x) { return softcap(x, 1.5); }, [](double x) { return 1.5 * std::tanh(x / 1.5); },
          -5, 5),
      one("softsign", softsign, [](double x) { return x / (1 + std::fabs(x)); }),
      one(
          "hardtanh", [](const Tensor& x) { return hardtanh(x); },
          [](double x) { return std::fmin(1, std::fmax(-1, x)); }),
      one(
          "hardsigmoid", hardsigmoid, [](double x) { return std::fmin(1, std::fmax(0, x / 6 + 0.5)); }, -5, 5),
      one(
          "hardswish", hardswish, [](double x) { return x * std::fmin(1, std::fmax(0, x / 6 + 0.5)); }, -5, 5),
      one(
          "relu6", relu6, [](double x) { return std::fmin(6, std::fmax(0, x)); }, -3, 9),
      one(
          "nan_to_num", [](const Tensor& x) { return nan_to_num(x, 0, 1, -1); }, [](double x) { return x; }),
      mask_of_one("isnan", isnan, [](double) { return 0.; }),
      mask_of_one("isinf", isinf, [](double) { return 0.; }),
      mask_of_one("isfinite", isfinite, [](double) { return 1.; }),
      mask_of_one("logical_not", logical_not, [](double x) { return double(x == 0); }),
  };
  OpRow signs = exact(one("signbit", signbit, [](double x) { return double(std::signbit(x)); }));
  signs.differentiable = false;
  table.push_back(std::move(signs));
  for (OpRow& row : table)
    for (const char* name : {"leaky_relu", "elu", "celu", "selu", "softsign", "hardtanh", "relu6"})
      if (row.name == name) row = with_kinks(row);
  for (OpRow& row : table)
    if (row.name == "hardsigmoid" || row.name == "hardswish") row = exact(row);
  for (OpRow& row : table)  // several ops, each rounded
    if (row.name == "mish" || row.name == "softsign" || row.name == "hardswish" || row.name == "selu")
      row.roundings = 3;
  return table;
}

std::vector<OpRow> functions_of_two() {
  std::vector<OpRow> table{
      with_kinks(two("atan2", atan2, std::atan2)),
      two("hypot", hypot, std::hypot, 0.2, 2),
      two("pow:tensors", pow, std::pow, 0.3, 2),
      two("logaddexp", logaddexp, [](double x, double y) { return std::log(std::exp(x) + std::exp(y)); }),
      with_kinks(two("copysign", copysign, std::copysign)),
      exact(two("fmod", fmod, std::fmod, 0.4, 4)),
      exact(two(
          "remainder", remainder, [](double x, double y) { return x - y * std::floor(x / y); }, 0.4, 4)),
      exact(two(
          "floor_divide", floor_divide, [](double x, double y) { return std::floor(x / y); }, 0.4, 4)),
      two(
          "lerp", [](const Tensor& x, const Tensor& y) { return lerp(x, y, 0.25); },
          [](double x, double y) { return x + 0.25 * (y - x); }),
      mask_of_two("logical_and", logical_and, [](double x, double y) { return double(x != 0 && y != 0); }),
      mask_of_two("logical_or", logical_or, [](double x, double y) { return double(x != 0 || y != 0); }),
      mask_of_two("logical_xor", logical_xor, [](double x, double y) { return double((x != 0) != (y != 0)); }),
  };
  for (OpRow& row : table)
    if (row.name == "lerp" || row.name == "logaddexp") row.roundings = 4;
  return table;
}

}  // namespace

std::vector<OpRow> math_rows() {
  std::vector<OpRow> table = functions_of_one();
  for (OpRow& row : functions_of_two()) table.push_back(std::move(row));
  OpRow close = mask_of_two(
      "isclose", [](const Tensor& x, const Tensor& y) { return isclose(x, y); },
      [](double x, double y) { return double(x == y); });
  table.push_back(std::move(close));
  OpRow next = two("nextafter", nextafter, [](double x, double y) { return std::nextafter(x, y); });
  next.differentiable = next.in_16_bit = false;
  table.push_back(std::move(next));
  return table;
}

}  // namespace braid::test
