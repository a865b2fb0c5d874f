// Values are computed in f64 on the host and rounded once, so that they are the same on every device.
#include "braid/autograd/create.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/manipulate.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/convert.h"
#include "braid/tensor/parallel.h"

namespace braid {

namespace {

// A list of n values of f64 or i64, each rounded to the type once.
template <class F>
Tensor filled(int64_t n, DType dtype, Device device, F&& value) {
  Tensor x = empty({n}, dtype);
  visit_any(dtype, [&]<class T>() {
    T* to = x.mutable_data<T>();
    parallel_for(n, grain_for(16), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = convert<T>(value(i));
    });
  });
  return x.to(device);
}

template <class F>
Tensor spaced(const char* op, int64_t n, DType dtype, Device device, F&& value) {
  check(n >= 0, op, [&] { return str("needs at least 0 values, got ", n); });
  check(is_float(dtype), op, [&] { return str("needs a floating-point type, got ", dtype); });
  return filled(n, dtype, device, value);
}

// Value i of n between two, from the nearer end, so that both are met.
double between(double first, double last, int64_t i, int64_t n) {
  if (n == 1) return first;
  const double step = last / static_cast<double>(n - 1) - first / static_cast<double>(n - 1);
  return 2 * i < n ? first + static_cast<double>(i) * step : last - static_cast<double>(n - 1 - i) * step;
}

Shape shape_of_nested(const detail::Nested& values) {
  Shape shape;
  for (const detail::Nested* level = &values; !level->is_number; level = level->list.data()) {
    shape.push_back(std::ssize(level->list));
    if (level->list.empty()) break;
  }
  return shape;
}

void flatten_nested(const detail::Nested& values, const Shape& shape, int axis, std::vector<double>& flat) {
  const bool fits =
      values.is_number ? axis == shape.rank() : axis < shape.rank() && std::ssize(values.list) == shape[axis];
  check(fits, "tensor", [&] {
    return str("needs lists of equal lengths, as in ", shape, ", got ",
               values.is_number ? std::string("a number") : str("a list of ", values.list.size()), " at depth ", axis);
  });
  if (values.is_number) flat.push_back(values.value);
  for (const detail::Nested& entry : values.list) flatten_nested(entry, shape, axis + 1, flat);
}

}  // namespace

Tensor detail::range(int64_t begin, int64_t end, int64_t step, DType dtype, Device device) {
  check(step != 0, "arange", "needs a step other than 0");
  const bool up = step > 0;
  const uint64_t from = static_cast<uint64_t>(begin), to = static_cast<uint64_t>(end), by = static_cast<uint64_t>(step);
  uint64_t count = 0;  // modulo 2^64: a distance may not fit an i64
  if (up ? begin < end : begin > end) count = (up ? to - from - 1 : from - to - 1) / (up ? by : 0 - by) + 1;
  check(count < uint64_t{1} << 60, "arange",
        [&] { return str("makes ", count, " values, more than any memory holds"); });
  const auto last = static_cast<int64_t>(from + (count - 1) * by);
  check(count == 0 || (holds(dtype, begin) && holds(dtype, last)), "arange",
        [&] { return str("from ", begin, " to ", last, " leaves the range of ", dtype, "; choose a wider dtype"); });
  return filled(static_cast<int64_t>(count), dtype, device,
                [=](int64_t i) { return static_cast<int64_t>(from + static_cast<uint64_t>(i) * by); });
}

Tensor detail::range(double begin, double end, double step, DType dtype, Device device) {
  const double count = std::ceil((end - begin) / step);
  check(step != 0 && std::isfinite(begin) && std::isfinite(count) && count < 0x1p53, "arange", [&] {
    return str("needs finite bounds and a step other than 0, got ", detail::shortest(begin), ", ",
               detail::shortest(end), ", ", detail::shortest(step));
  });
  const auto value = [=](int64_t i) { return std::fma(static_cast<double>(i), step, begin); };
  const int64_t n = std::max(int64_t{0}, static_cast<int64_t>(count));
  const auto fits = [&](double x) {
    return is_float(dtype) || (std::fabs(x) < 0x1p63 && holds(dtype, static_cast<int64_t>(x)));
  };
  check(n == 0 || (fits(begin) && fits(value(n - 1))), "arange", [&] {
    return str("from ", detail::shortest(begin), " to ", detail::shortest(value(n - 1)), " leaves the range of ", dtype,
               "; choose a wider dtype");
  });
  return filled(n, dtype, device, value);
}

Tensor linspace(double first, double last, int64_t n, DType dtype, Device device) {
  return spaced("linspace", n, dtype, device, [&](int64_t i) { return between(first, last, i, n); });
}

Tensor logspace(double first, double last, int64_t n, double base, DType dtype, Device device) {
  check(base > 0, "logspace", [&] { return str("needs a positive base, got ", detail::shortest(base)); });
  return spaced("logspace", n, dtype, device, [&](int64_t i) { return std::pow(base, between(first, last, i, n)); });
}

Tensor geomspace(double first, double last, int64_t n, DType dtype, Device device) {
  check(first * last > 0 || (first > 0 && last > 0) || (first < 0 && last < 0), "geomspace", [&] {
    return str("needs two values of one sign, not 0, got ", detail::shortest(first), " and ", detail::shortest(last));
  });
  const double low = std::log(std::fabs(first)), high = std::log(std::fabs(last));
  return spaced("geomspace", n, dtype, device, [&](int64_t i) {
    if (i == 0 || i == n - 1) return i == 0 ? first : last;
    return std::copysign(std::exp(between(low, high, i, n)), first);
  });
}

Tensor full_like(const Tensor& x, double value) { return full(x.shape(), value, x.dtype(), x.device()); }

Tensor ones_like(const Tensor& x) { return full_like(x, 1); }

Tensor rand_like(const Tensor& x, RandomKey key) {
  const CalledOp called("rand_like");
  return rand(x.shape(), key, x.dtype(), x.device());
}

Tensor randn_like(const Tensor& x, RandomKey key) {
  const CalledOp called("randn_like");
  return randn(x.shape(), key, x.dtype(), x.device());
}

Tensor eye(int64_t rows, int64_t columns, int64_t k, DType dtype, Device device) {
  check(rows >= 0 && columns >= 0, "eye",
        [&] { return str("needs sizes of at least 0, got ", rows, " and ", columns); });
  Tensor x = zeros({rows, columns}, dtype, device);
  diagonal(x, k).fill(1);
  return x;
}

Tensor tri(int64_t rows, int64_t columns, int64_t k, DType dtype, Device device) {
  const CalledOp called("tri");
  check(rows >= 0 && columns >= 0, "tri",
        [&] { return str("needs sizes of at least 0, got ", rows, " and ", columns); });
  return tril(full({rows, columns}, 1, dtype, device), k);
}

Tensor tensor(const detail::Nested& values, DType dtype, Device device) {
  const Shape shape = shape_of_nested(values);
  std::vector<double> flat;
  flatten_nested(values, shape, 0, flat);
  return from_vector(flat, shape).to(dtype).to(device);
}

}  // namespace braid
