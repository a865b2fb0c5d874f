// A device's table whose calls say what they are: their phase, and the bytes of their operands.
#pragma once
#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

#include "braid/tensor/kernels/backend.h"

namespace braid::detail {

// ---- what a call is ----

struct MeasuredCall {
  const char* phase;
  int64_t bytes;  // read and written: each operand once; what is updated in place and said to be, twice
  const DcmhaInputs* attention = nullptr;  // of a call of attention
  bool backward = false;                   // of it
};

// The phase of a family's kernels in a step; "pointwise" also copies, sums, lookups, the splitting of queries, keys and
// values, and losses.
template <class Family>
constexpr const char* phase_of() {
  constexpr bool multiplies = std::is_same_v<Family, MatmulKernels> || std::is_same_v<Family, ConvolutionKernels> ||
                              std::is_same_v<Family, Int8Kernels>;
  if (multiplies) return "products";
  if (std::is_same_v<Family, AttentionKernels>) return "attention";
  if (std::is_same_v<Family, ComposeFactorsKernels>) return "mixing";
  if (std::is_same_v<Family, NormKernels>) return "norms";
  return std::is_same_v<Family, OptimizerKernels> ? "optimizer" : "pointwise";
}

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
int64_t bytes_of(const T& x) {
  if constexpr (std::is_same_v<T, DcmhaInputs> || std::is_same_v<T, DcmhaGradients>) {
    int64_t bytes = 0;
    for_each_tensor([&](const AttentionRole&, const Tensor& operand) { bytes += bytes_of(operand); }, x);
    return bytes;
  } else {
    return 0;  // a number; small tables
  }
}

template <class Family, class... Args>
int64_t bytes_of_call(const Args&... args) {
  const int64_t operands = (int64_t{0} + ... + bytes_of(args));
  if constexpr (std::is_same_v<Family, MatmulKernels> && (std::is_same_v<Args, bool> || ...)) {
    const auto all = std::tie(args...);
    return operands + (std::get<2>(all) ? bytes_of(std::get<3>(all)) : 0);  // y += reads y
  }
  return operands;
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

// Device: `table()` has the kernels, and a Device::Scope is made of a MeasuredCall and lives during the call.
template <class Device, auto family, size_t i, class R, class... Args>
R measured_call(Args... args) {
  using Family = std::remove_cvref_t<decltype(std::declval<Backend>().*family)>;
  const auto function = std::bit_cast<R (*)(Args...)>(std::get<i>(entries(Device::table().*family)));
  MeasuredCall call{phase_of<Family>(), bytes_of_call<Family, std::remove_cvref_t<Args>...>(args...)};
  if constexpr (std::is_same_v<R, AttentionPlan>) call.bytes = 0;  // looks at shapes alone
  const auto attention = [&]<class T>(const T& x) {
    if constexpr (std::is_same_v<T, DcmhaInputs>) call.attention = &x;
    if constexpr (std::is_same_v<T, DcmhaGradients>) call.backward = true;
  };
  (attention(args), ...);
  const typename Device::Scope scope(call);
  return function(args...);
}

template <class Device, auto family, size_t i, class K, class R, class... Args>
void measure(K& kernel, R (K::*)(Args...) const) {
  if (kernel) kernel = K(measured_call<Device, family, i, R, Args...>);
}

template <class Device, auto family>
void measure_family(Backend& table) {
  const auto entry = [&]<size_t i>(std::integral_constant<size_t, i>) {
    auto& kernel = std::get<i>(entries(table.*family));
    using K = std::remove_reference_t<decltype(kernel)>;
    if constexpr (std::is_class_v<K>) measure<Device, family, i>(kernel, &K::operator());
  };
  [&]<size_t... i>(std::index_sequence<i...>) { (entry(std::integral_constant<size_t, i>()), ...); }
  (std::make_index_sequence<entries_of<std::remove_cvref_t<decltype(table.*family)>>()>{});
}

// The device's table with every kernel measured but those of the stream.
template <class Device>
Backend measured() {
  Backend b = Device::table();
  const auto all = [&]<auto... family> { (measure_family<Device, family>(b), ...); };
  all.template
  operator()<&Backend::copy, &Backend::pointwise, &Backend::math, &Backend::random, &Backend::reduce, &Backend::order,
             &Backend::scan, &Backend::matmul, &Backend::convolution, &Backend::int8, &Backend::softmax, &Backend::norm,
             &Backend::rope, &Backend::index, &Backend::loss, &Backend::attention, &Backend::compose_factors,
             &Backend::split_qkv, &Backend::optimizer, &Backend::integer, &Backend::linalg>();
  return b;
}

}  // namespace braid::detail
