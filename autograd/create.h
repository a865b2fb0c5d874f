// New tensors, beside those of tensor/tensor.h and autograd/ops.h: ranges, values like another tensor's, nested lists.
#pragma once
#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "braid/autograd/ops.h"

namespace braid {

namespace detail {
Tensor range(int64_t begin, int64_t end, int64_t step, DType dtype, Device device);
Tensor range(double begin, double end, double step, DType dtype, Device device);
template <class T>
concept Number = std::is_arithmetic_v<T>;

// Nested lists of numbers.
struct Nested {
  template <Number T>
  Nested(T number) : value(static_cast<double>(number)), is_number(true) {}
  Nested(std::initializer_list<Nested> entries) : list(entries) {}
  double value = 0;
  bool is_number = false;
  std::vector<Nested> list;
};
}  // namespace detail

// begin, begin + step, ... before end: arange(2, 8), arange(0., 1., 0.25), arange(8, 0, -2); nothing where end lies
// behind begin. By default i64 for integers, else f32. Element i is begin + i step, rounded once to the type, to an
// integer type towards 0.
template <detail::Number Begin, detail::Number End, detail::Number Step = int>
Tensor arange(Begin begin, End end, Step step = 1,
              DType dtype = std::integral<Begin> && std::integral<End> && std::integral<Step> ? DType::i64 : DType::f32,
              Device device = kCpu) {
  using Common = std::conditional_t<std::integral<Begin> && std::integral<End> && std::integral<Step>, int64_t, double>;
  return detail::range(static_cast<Common>(begin), static_cast<Common>(end), static_cast<Common>(step), dtype, device);
}

// n values from first to last, both included exactly, with equal differences. A single one is first.
Tensor linspace(double first, double last, int64_t n, DType dtype = DType::f32, Device device = kCpu);
// base to the power of linspace(first, last, n).
Tensor logspace(double first, double last, int64_t n, double base = 10, DType dtype = DType::f32, Device device = kCpu);
// n values from first to last, both included exactly, with equal quotients; both positive or both negative.
Tensor geomspace(double first, double last, int64_t n, DType dtype = DType::f32, Device device = kCpu);

// With the shape, type and device of x; without history.
Tensor full_like(const Tensor& x, double value);
Tensor ones_like(const Tensor& x);
Tensor rand_like(const Tensor& x, RandomKey key);
Tensor randn_like(const Tensor& x, RandomKey key);

// (rows, columns), 1 on diagonal k, which lies k columns to the right of the main one.
Tensor eye(int64_t rows, int64_t columns, int64_t k = 0, DType dtype = DType::f32, Device device = kCpu);
// (rows, columns), 1 on diagonal k and to its left.
Tensor tri(int64_t rows, int64_t columns, int64_t k = 0, DType dtype = DType::f32, Device device = kCpu);

// tensor({{1, 2, 3}, {4, 5, 6}}) -> (2, 3). All lists of one level have the same length.
Tensor tensor(const detail::Nested& values, DType dtype = DType::f32, Device device = kCpu);

}  // namespace braid
