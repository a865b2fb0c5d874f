// Random draws. Numbers come from the kernels of rand and randn; integers and the truncated normal are drawn on the
// host, where their arithmetic is exact, element by element from the key.
#include "braid/autograd/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/entries.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"

namespace braid {

namespace {

__extension__ using Wide = unsigned __int128;

// Element i of the stream, in [0, n): the upper half of 64 random bits times n.
uint64_t below(uint64_t n, uint64_t i, RandomKey key) {
  const uint64_t bits = uint64_t{random_bits(2 * i, key)} << 32 | random_bits(2 * i + 1, key);
  return static_cast<uint64_t>(Wide{bits} * n >> 64);
}

// Element i of the stream, in (0, 1): the middle of one of 2^52 cells.
double fine_unit(uint64_t i, RandomKey key) {
  const uint64_t bits = uint64_t{random_bits(2 * i, key)} << 32 | random_bits(2 * i + 1, key);
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// The distribution function of the normal distribution, without cancellation in its lower tail.
double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// The x with normal_below(x) = p, p in (0, 1). A rational function (Abramowitz and Stegun 26.2.23) errs by 5e-4;
// each step of Halley's method cubes that.
double normal_quantile(double p) {
  const double tail = std::fmin(p, 1 - p), r = std::sqrt(-2 * std::log(tail));
  double x = (2.515517 + r * (0.802853 + r * 0.010328)) / (1 + r * (1.432788 + r * (0.189269 + r * 0.001308))) - r;
  for (int step = 0; step < 2; ++step) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    if (!(density > 0)) break;
    const double newton = (normal_below(x) - tail) / density;
    x -= newton / (1 + x * newton / 2);
  }
  return p < 0.5 ? x : -x;
}

void check_shape_of(const char* op, const Shape& shape) {
  for (const int64_t n : shape) check(n >= 0, op, [&] { return str("needs sizes of at least 0, got ", shape); });
}

// logits + Gumbel noise, in f32 or f64.
Tensor noisy(const Tensor& logits, const Shape& shape, RandomKey key) {
  const DType type = accumulate_type(logits.dtype());
  return add(logits.detach().to(type), gumbel(shape, key, type, logits.device()));
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, RandomKey key, DType dtype, Device device) {
  check(low < high && std::isfinite(high - low), "uniform", [&] {
    return str("needs finite bounds, low below high, got ", detail::shortest(low), " and ", detail::shortest(high));
  });
  Tensor x = empty(shape, dtype, device);
  check_float("uniform", x);
  backend(device).random.uniform(low, high, key, x);
  return x;
}

Tensor normal(const Shape& shape, double mean, double deviation, RandomKey key, DType dtype, Device device) {
  check(std::isfinite(mean) && deviation >= 0 && std::isfinite(deviation), "normal", [&] {
    return str("needs a finite mean and a finite deviation of at least 0, got ", detail::shortest(mean), " and ",
               detail::shortest(deviation));
  });
  Tensor x = empty(shape, dtype, device);
  check_float("normal", x);
  backend(device).random.normal(mean, deviation, key, x);
  return x;
}

// By inversion: x = quantile(F(a) + u (F(b) - F(a))), a and b the bounds in deviations. The upper tail is the mirrored
// lower one, where F keeps its digits.
Tensor truncated_normal(const Shape& shape, const TruncatedNormal& how, RandomKey key, DType dtype, Device device) {
  check(std::isfinite(how.mean) && how.deviation > 0 && std::isfinite(how.deviation), "truncated_normal", [&] {
    return str("needs a finite mean and a finite positive deviation, got ", detail::shortest(how.mean), " and ",
               detail::shortest(how.deviation));
  });
  check(is_float(dtype), "truncated_normal", [&] { return str("needs a floating-point type, got ", dtype); });
  check_shape_of("truncated_normal", shape);
  const double low = (how.low - how.mean) / how.deviation, high = (how.high - how.mean) / how.deviation;
  const bool mirrored = low > 0;
  const double first = normal_below(mirrored ? -high : low), last = normal_below(mirrored ? -low : high);
  check(how.low < how.high && last > first && last > 1e-290, "truncated_normal", [&] {
    return str("needs bounds, low below high, that are not all but impossible, got ", detail::shortest(how.low),
               " and ", detail::shortest(how.high), " around ", detail::shortest(how.mean), " with deviation ",
               detail::shortest(how.deviation));
  });
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  parallel_for(std::ssize(values), grain_for(200), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double p = std::fma(fine_unit(static_cast<uint64_t>(i), key), last - first, first);
      const double x = p >= 1 ? high : normal_quantile(p) * (mirrored ? -1 : 1);
      values[static_cast<size_t>(i)] = std::fmin(std::fmax(how.mean + how.deviation * x, how.low), how.high);
    }
  });
  return from_vector(values, shape).to(dtype).to(device);
}

// -log(u) / rate
Tensor exponential(const Shape& shape, double rate, RandomKey key, DType dtype, Device device) {
  const CalledOp called("exponential");
  check(rate > 0 && std::isfinite(rate), "exponential",
        [&] { return str("needs a finite positive rate, got ", detail::shortest(rate)); });
  check(is_float(dtype), "exponential", [&] { return str("needs a floating-point type, got ", dtype); });
  return scale(log(rand(shape, key, accumulate_type(dtype), device)), -1 / rate).to(dtype);
}

// -log(-log(u))
Tensor gumbel(const Shape& shape, RandomKey key, DType dtype, Device device) {
  const CalledOp called("gumbel");
  check(is_float(dtype), "gumbel", [&] { return str("needs a floating-point type, got ", dtype); });
  return neg(log(neg(log(rand(shape, key, accumulate_type(dtype), device))))).to(dtype);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, RandomKey key, DType dtype, Device device) {
  check(!is_float(dtype), "randint", [&] { return str("needs an integer type, got ", dtype); });
  check(low < high && holds(dtype, low) && holds(dtype, high - 1), "randint",
        [&] { return str("needs low below high, both within ", dtype, ", got ", low, " and ", high); });
  check_shape_of("randint", shape);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  Tensor x = empty(shape, dtype);
  integer::visit_type(dtype, "randint", [&]<class T>() {
    T* values = x.mutable_data<T>();
    parallel_for(x.numel(), grain_for(40), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        values[i] = static_cast<T>(static_cast<uint64_t>(low) + below(range, static_cast<uint64_t>(i), key));
    });
  });
  return x.to(device);
}

// Fisher and Yates: entry i changes places with one of those from 0 to i.
Tensor randperm(int64_t n, RandomKey key, Device device) {
  const CalledOp called("randperm");
  Tensor x = arange(n);
  auto* values = x.mutable_data<int64_t>();
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(values[i], values[below(static_cast<uint64_t>(i) + 1, static_cast<uint64_t>(i), key)]);
  return x.to(device);
}

Tensor shuffle(const Tensor& x, RandomKey key, int axis) {
  const int a = normal_axis(axis, x.rank(), "shuffle");
  return entries("shuffle", x, a, randperm(x.dim(a), key).to_vector<int64_t>());
}

Tensor bernoulli(const Shape& shape, double p, RandomKey key, Device device) {
  const CalledOp called("bernoulli");
  check(p >= 0 && p <= 1, "bernoulli", [&] { return str("needs a probability in [0, 1], got ", detail::shortest(p)); });
  return lt(rand(shape, key, DType::f32, device), p);
}

Tensor bernoulli(const Tensor& p, RandomKey key) {
  const CalledOp called("bernoulli");
  check_float("bernoulli", p);
  const DType type = accumulate_type(p.dtype());
  const Tensor wide = p.detach().to(type);
  if (p.numel() > 0) {
    const Tensor inside = ge(wide, 0.0).to(DType::f32) * le(wide, 1.0).to(DType::f32);
    check(min(inside.contiguous().reshaped({-1}), 0).item() == 1, "bernoulli",
          "needs probabilities in [0, 1], got another number");
  }
  return lt(rand(p.shape(), key, type, p.device()), wide);
}

Tensor categorical(const Tensor& logits, RandomKey key, int axis) {
  const CalledOp called("categorical");
  check_float("categorical", logits);
  const int a = normal_axis(axis, logits.rank(), "categorical");
  check(logits.dim(a) > 0, "categorical", [&] { return str("axis ", axis, " of ", logits.shape(), " is empty"); });
  std::vector<int> order;
  for (int i = 0; i < logits.rank(); ++i)
    if (i != a) order.push_back(i);
  order.push_back(a);
  const Tensor rows = logits.detach().permuted(order);
  return argmax(noisy(rows, rows.shape(), key));
}

// The largest `count` of log(weight) + Gumbel noise are a draw without replacement (Yellott 1977).
Tensor multinomial(const Tensor& weights, int64_t count, RandomKey key, bool replacement) {
  const CalledOp called("multinomial");
  check_float("multinomial", weights);
  check(weights.rank() >= 1 && count >= 0, "multinomial",
        [&] { return str("needs weights (..., V) and a count of at least 0, got ", weights.shape(), " and ", count); });
  const Tensor wide = weights.detach().to(accumulate_type(weights.dtype()));
  const int64_t needed = replacement ? std::min<int64_t>(count, 1) : count;
  const auto least = [](const Tensor& x) { return min(x.contiguous().reshaped({-1}), 0).item(); };
  if (wide.numel() > 0) {
    const double infinity = std::numeric_limits<double>::infinity();
    check(least(ge(wide, 0.0).to(DType::f32) * lt(wide, infinity).to(DType::f32)) == 1, "multinomial",
          "needs finite weights of at least 0, got another number");
    check(least(sum(gt(wide, 0.0).to(DType::f64), {-1})) >= static_cast<double>(needed), "multinomial", [&] {
      return str("needs at least ", needed, " positive weights in each row of ", weights.shape(),
                 needed > 1 ? "; draw fewer, or with replacement = true" : ", found a row without");
    });
  } else {
    check(weights.dim(-1) > 0 || needed == 0, "multinomial",
          [&] { return str("needs at least ", needed, " positive weights in each row, got ", weights.shape()); });
  }
  Shape shape = weights.shape();
  shape[-1] = count;
  if (numel(shape) == 0) return zeros(shape, DType::i64, weights.device());
  const Tensor logits = log(wide);
  if (!replacement) return topk(noisy(logits, logits.shape(), key), count).indices;
  check(weights.rank() < Shape::max_rank, "multinomial",
        [&] { return str("needs at most ", Shape::max_rank - 1, " axes, got ", weights.shape()); });
  shape.push_back(weights.dim(-1));
  return argmax(noisy(logits.unsqueezed(-2), shape, key));
}

}  // namespace braid
