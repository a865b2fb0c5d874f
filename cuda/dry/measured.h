// A family of kernels whose calls count the bytes of their operands, each tensor once.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "braid/cuda/dry/log.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda::dry {

// ---- bytes of an argument ----

inline int64_t bytes_of(const Tensor& x) {
  if (!x) return 0;
  int64_t elements = 1;
  for (int axis = 0; axis < x.rank(); ++axis) elements *= x.strides()[axis] == 0 && x.dim(axis) > 0 ? 1 : x.dim(axis);
  return elements * size_of(x.dtype());
}
inline int64_t bytes_of(const std::vector<Tensor>& list) {
  int64_t bytes = 0;
  for (const Tensor& x : list) bytes += bytes_of(x);
  return bytes;
}
inline int64_t bytes_of(const UpdateStep& step) {  // parameters and state are read and written
  int64_t bytes = 0;
  for (const UpdateStep::Item& item : step.items)
    bytes += 2 * bytes_of(item.parameter) + bytes_of(item.gradient) + 2 * bytes_of(item.state) + bytes_of(item.copy);
  return bytes;
}
template <class T>
int64_t bytes_of(const T&) {  // a number; attention's operands, of which its kernels' launches say more
  return 0;
}

// ---- the entries of a table, as a tuple of references ----

struct AnyEntry {
  template <class T>
  operator T() const;
};
template <class Family, class... Entries>
constexpr size_t entries_of() {
  if constexpr (requires { Family{Entries{}..., AnyEntry{}}; }) {
    return entries_of<Family, Entries..., AnyEntry>();
  } else {
    return sizeof...(Entries);
  }
}
template <class Family>
auto entries(Family& f) {
  constexpr size_t n = entries_of<std::remove_const_t<Family>>();
  static_assert(n >= 1 && n <= 8, "a family of kernels with more entries needs a line here");
  if constexpr (n == 1) {
    auto& [a] = f;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = f;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = f;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = f;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = f;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = f;
    return std::tie(a, b, c, d, e, g);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = f;
    return std::tie(a, b, c, d, e, g, h);
  } else {
    auto& [a, b, c, d, e, g, h, i] = f;
    return std::tie(a, b, c, d, e, g, h, i);
  }
}

// ---- measured calls ----

template <const auto& table, size_t i, class R, class... Args>
R measured_call(Args... args) {
  const OpScope scope((int64_t{0} + ... + bytes_of(args)));
  return std::get<i>(entries(table))(args...);
}

template <const auto& table, size_t i, class K, class R, class... Args>
void measure(K& kernel, R (K::*)(Args...) const) {
  if (kernel) kernel = K(measured_call<table, i, R, Args...>);
}

template <const auto& table, size_t i, class Family>
void measure_entry(Family& family) {
  auto& kernel = std::get<i>(entries(family));
  using K = std::remove_reference_t<decltype(kernel)>;
  if constexpr (std::is_class_v<K>) measure<table, i>(kernel, &K::operator());
}

// The family with every kernel measured.
template <const auto& table>
auto measured() {
  auto family = table;
  [&]<size_t... i>(std::index_sequence<i...>) { (measure_entry<table, i>(family), ...); }
  (std::make_index_sequence<entries_of<decltype(family)>()>{});
  return family;
}

}  // namespace braid::cuda::dry
