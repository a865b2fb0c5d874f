// Every pointwise op and its slope at the ends of the numbers of each type, against the limits of the mathematics, and
// quotients by a number against quotients of tensors.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "braid/autograd.h"
#include "braid/tensor/base/strings.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using braid::detail::shortest;

BOOST_AUTO_TEST_SUITE(ops_pointwise_limits)

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Type {
  DType dtype;
  double largest, smallest, rounding;
};
// The smallest numbers have two digits, so that their halves are no zeros.
constexpr Type kTypes[] = {
    {DType::f64, std::numeric_limits<double>::max(), 4 * std::numeric_limits<double>::denorm_min(), 1e-14},
    {DType::f32, std::numeric_limits<float>::max(), 4 * std::numeric_limits<float>::denorm_min(), 1e-6},
    {DType::bf16, 0x1.fep127, 0x1p-131, 8e-3},
    {DType::f16, 65504, 0x1p-22, 1e-3}};

std::vector<double> ends(const Type& t) {
  return {-kInf, -t.largest, -1, -t.smallest, -0.0, 0.0, t.smallest, 1, t.largest, kInf, std::nan("")};
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_value(double x) { return x == -kInf ? 0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double silu_value(double x) { return x == -kInf ? 0 : x * logistic(x); }
double silu_slope(double x) { return std::isinf(x) ? x > 0 : logistic(x) * (1 + x * (1 - logistic(x))); }
double gelu_slope(double x) {
  return std::isinf(x) ? x > 0 : 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
double gelu_tanh_value(double x) {
  return x == -kInf ? 0 : 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_tanh_slope(double x) {
  if (std::fabs(x) > 20) return x > 0;
  const double u = std::sqrt(2 / M_PI), t = std::tanh(u * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * u * (1 + 3 * 0.044715 * x * x);
}

using Number = double (*)(double);
using Function = Tensor (*)(const Tensor&);
struct UnaryRow {
  const char* name;
  Function op;
  Number value, slope;
};
const UnaryRow kUnary[] = {
    {"neg", neg, [](double x) { return -x; }, [](double) { return -1.0; }},
    {"scale", [](const Tensor& x) { return scale(x, 1.5); }, [](double x) { return 1.5 * x; },
     [](double) { return 1.5; }},
    {"affine", [](const Tensor& x) { return affine(x, -2, 1); }, [](double x) { return -2 * x + 1; },
     [](double) { return -2.0; }},
    {"x / 3", [](const Tensor& x) { return x / 3.0; }, [](double x) { return x / 3; }, [](double) { return 1 / 3.0; }},
    {"3 / x", [](const Tensor& x) { return 3.0 / x; }, [](double x) { return 3 / x; },
     [](double x) { return -(3 / x) / x; }},
    {"exp", exp, std::exp, std::exp},
    {"log", log, std::log, [](double x) { return 1 / x; }},
    {"sqrt", sqrt, std::sqrt, [](double x) { return 0.5 / std::sqrt(x); }},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); },
     [](double x) { return -0.5 / std::sqrt(x) / std::sqrt(x) / std::sqrt(x); }},
    {"square", square, [](double x) { return x * x; }, [](double x) { return 2 * x; }},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, [](double x) { return -(1 / x) / x; }},
    {"abs", abs, std::fabs, [](double x) { return double(x > 0) - double(x < 0); }},
    {"tanh", tanh, std::tanh, [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
    {"sigmoid", sigmoid, logistic, [](double x) { return logistic(x) * (1 - logistic(x)); }},
    {"silu", silu, silu_value, silu_slope},
    {"gelu", gelu, gelu_value, gelu_slope},
    {"gelu_tanh", gelu_tanh, gelu_tanh_value, gelu_tanh_slope},
    {"relu", relu, [](double x) { return x <= 0 ? 0 : x; }, [](double x) { return x <= 0 ? 0.0 : 1.0; }},
    {"pow 3", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return std::pow(x, 3); },
     [](double x) { return 3 * x * x; }},
    {"pow 0", [](const Tensor& x) { return pow(x, 0); }, [](double) { return 1.0; }, [](double) { return 0.0; }},
    {"clamp", [](const Tensor& x) { return clamp(x, -0.5, 1); },
     [](double x) { return x < -0.5 ? -0.5
                           : x > 1  ? 1
                                    : x; },
     [](double x) { return x >= -0.5 && x <= 1 ? 1.0 : 0.0; }},
};

struct BinaryRow {
  const char* name;
  Tensor (*op)(const Tensor&, const Tensor&);
  double (*value)(double, double);
  double (*d_dx)(double, double);
  double (*d_dy)(double, double);
};
double one(double, double) { return 1; }
const BinaryRow kBinary[] = {
    {"add", add, [](double x, double y) { return x + y; }, one, one},
    {"sub", sub, [](double x, double y) { return x - y; }, one, [](double, double) { return -1.0; }},
    {"mul", mul, [](double x, double y) { return x * y; }, [](double, double y) { return y; },
     [](double x, double) { return x; }},
    {"div", div, [](double x, double y) { return x / y; }, [](double, double y) { return 1 / y; },
     [](double x, double y) { return -(x / y) / y; }},
    {"maximum", maximum, [](double x, double y) { return x >= y || std::isnan(x) ? x : y; },
     [](double x, double y) { return y > x ? 0.0 : 1.0; }, [](double x, double y) { return x >= y ? 0.0 : 1.0; }},
    {"minimum", minimum, [](double x, double y) { return x <= y || std::isnan(x) ? x : y; },
     [](double x, double y) { return y < x ? 0.0 : 1.0; }, [](double x, double y) { return x <= y ? 0.0 : 1.0; }},
    {"swiglu", swiglu, [](double x, double y) { return silu_value(x) * y; },
     [](double x, double y) { return silu_slope(x) * y; }, [](double x, double) { return silu_value(x); }},
};

// The results that are wrong, with their inputs. Results below the smallest normal number may have lost their digits.
std::string wrong(const Type& t, const Tensor& got, const std::vector<double>& want,
                  const std::function<std::string(size_t)>& input) {
  const std::vector<double> found = got.to_vector<double>();
  const std::vector<double> rounded = from_vector(want, {std::ssize(want)}).to(t.dtype).to_vector<double>();
  std::string list;
  for (size_t i = 0; i < want.size(); ++i) {
    const double w = rounded[i], f = found[i], allowed = t.rounding * std::fabs(w) + t.smallest;
    const bool same = std::isnan(w) ? std::isnan(f) : f == w || std::fabs(f - w) <= allowed;
    if (!same) list += " at " + input(i) + ": " + shortest(f) + ", expected " + shortest(w) + ";";
  }
  return list;
}

}  // namespace

BOOST_AUTO_TEST_CASE(functions_of_one_number) {
  for (const Type& t : kTypes) {
    const std::vector<double> at = ends(t);
    const auto input = [&](size_t i) { return shortest(at[i]); };
    for (const UnaryRow& row : kUnary) {
      Tensor x = from_vector(at, {std::ssize(at)}).to(t.dtype);
      require_grad(x);
      const Tensor y = row.op(x);
      backward(y, full(x.shape(), 1, t.dtype));
      std::vector<double> value, slope;
      for (const double v : at) value.push_back(row.value(v)), slope.push_back(row.slope(v));
      BOOST_TEST_CONTEXT(row.name << " in " << str(t.dtype)) {
        BOOST_TEST(wrong(t, y, value, input) == "");
        BOOST_TEST(wrong(t, grad(x), slope, input) == "", "slope" << wrong(t, grad(x), slope, input));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(functions_of_two_numbers) {
  for (const Type& t : kTypes) {
    const std::vector<double> at = ends(t);
    const auto n = std::ssize(at);
    std::vector<double> left, right;
    for (const double a : at)
      for (const double b : at) left.push_back(a), right.push_back(b);
    const auto input = [&](size_t i) { return shortest(left[i]) + ", " + shortest(right[i]); };
    for (const BinaryRow& row : kBinary) {
      Tensor x = from_vector(left, {n * n}).to(t.dtype), y = from_vector(right, {n * n}).to(t.dtype);
      require_grad(x);
      require_grad(y);
      const Tensor z = row.op(x, y);
      backward(z, full(x.shape(), 1, t.dtype));
      std::vector<double> value, dx, dy;
      for (size_t i = 0; i < left.size(); ++i) {
        value.push_back(row.value(left[i], right[i]));
        dx.push_back(row.d_dx(left[i], right[i]));
        dy.push_back(row.d_dy(left[i], right[i]));
      }
      BOOST_TEST_CONTEXT(row.name << " in " << str(t.dtype)) {
        BOOST_TEST(wrong(t, z, value, input) == "");
        BOOST_TEST(wrong(t, grad(x), dx, input) == "", "dx" << wrong(t, grad(x), dx, input));
        BOOST_TEST(wrong(t, grad(y), dy, input) == "", "dy" << wrong(t, grad(y), dy, input));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(zeros_keep_their_sign) {
  const Tensor zeros = from_values({0.0, -0.0}, {2});
  const auto signs = [&](const Tensor& y) {
    return std::signbit(y.to_vector<double>()[0]) * 10 + std::signbit(y.to_vector<double>()[1]);
  };
  for (const Tensor& y : {scale(zeros, 2), zeros * 2, zeros / 2, tanh(zeros), silu(zeros), gelu(zeros), sqrt(zeros)})
    BOOST_TEST(signs(y) == 1);
  BOOST_TEST(signs(neg(zeros)) == 10);
  BOOST_TEST(signs(abs(zeros)) == 0);
}

// A slope that is chosen by a comparison is no product with 0.
BOOST_AUTO_TEST_CASE(an_infinite_gradient_does_not_pass_where_the_slope_is_0) {
  const auto passed = [](Function op, double at) {
    Tensor x = full({1}, at);
    require_grad(x);
    backward(op(x), full({1}, kInf));
    return grad(x).item();
  };
  BOOST_TEST(passed(relu, -1) == 0.0);
  BOOST_TEST(passed(abs, 0) == 0.0);
  BOOST_TEST(passed([](const Tensor& x) { return clamp(x, 0, 1); }, 2) == 0.0);
}

// The quotient of the numbers in the type of the arithmetic, rounded to the type of the tensor.
BOOST_AUTO_TEST_CASE(quotients_by_a_number_are_rounded_as_those_of_tensors) {
  std::vector<double> values{0, 1e-5, -3};
  for (int i = 1; i <= 1000; ++i) values.push_back(i);
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const DType wide = accumulate_type(t);
    Tensor x = from_vector(values, {std::ssize(values)}).to(t);
    require_grad(x);
    for (const double a : {1e-39, 3.0, -7.0, 49.0, 0.1}) {
      const Tensor by = full({}, a, wide), plain = x.detach();
      const auto same = [](const Tensor& got, const Tensor& want) {
        return is_close(got.to_vector<double>(), want.to_vector<double>(), 0);
      };
      BOOST_TEST_CONTEXT(str(t) << ", " << a) {
        BOOST_TEST(same(plain / a, div(plain.to(wide), by).to(t)));
        BOOST_TEST(same(a / plain, div(by, plain.to(wide)).to(t)));
        zero_grad(x);
        backward(x / a, plain);
        BOOST_TEST(same(grad(x), div(plain.to(wide), by).to(t)));
      }
    }
  }
  for (int i = 1; i <= 1000; ++i) {
    BOOST_TEST((full({1}, i, DType::f64) / i).item() == 1.0);
    BOOST_TEST((full({1}, i) / i).item() == 1.0);
    BOOST_TEST((i / full({1}, i)).item() == 1.0);
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_quotients_are_quotients) {
  Tensor x = full({1}, 0), y = full({1}, 1e-39);
  require_grad(x);
  backward(div(x, y), full({1}, 1e-5));
  BOOST_TEST(std::fabs(grad(x).item() - 1e34) < 1e29);
  Tensor u = full({1}, 49.0, DType::f64), v = full({1}, 49.0, DType::f64);
  require_grad(u);
  backward(div(u, v), full({1}, 49, DType::f64));
  BOOST_TEST(grad(u).item() == 1.0);
  zero_grad(u);
  backward(log(u), full({1}, 49, DType::f64));
  BOOST_TEST(grad(u).item() == 1.0);
}

// Means divide by their count.
BOOST_AUTO_TEST_CASE(the_mean_of_equal_numbers_is_that_number) {
  for (const int64_t n : {3, 49, 98, 103, 107, 161}) {
    Tensor x = ones({n, 2}, DType::f64);
    require_grad(x);
    BOOST_TEST(mean(x).item() == 1.0);
    BOOST_TEST(at(mean(x, {0}), {1}) == 1.0);
    BOOST_TEST(mse_loss(x, zeros_like(x)).item() == 1.0);
    backward(sum(mean(x, {0})));
    BOOST_TEST(at(grad(x), {0, 0}) == 1.0 / static_cast<double>(n));
    const Tensor logits = zeros({n, 2}, DType::f64), targets = full({n}, 1, DType::i64);
    BOOST_TEST(cross_entropy(logits, targets).item() ==
               sum(cross_entropy_per_token(logits, targets)).item() / double(n));
  }
  const Tensor y = from_values({0, 2}, {2}, DType::f64);
  BOOST_TEST(var(y, {0}, 0).item() == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
