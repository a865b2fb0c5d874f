// Pointwise kernels: the formulas of tensor/kernels/pointwise_ops.h, V elements per thread
// (cuda/device/elementwise.cuh).
//
// The kernel branches on the formula: one branch for V elements, the same for all threads, costs nothing beside the
// memory latency, and keeps the number of kernels small.
#include "braid/cuda/device/kernel.h"

#include "braid/cuda/device/elementwise.cuh"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::cuda {

namespace {

// Blocks per multiprocessor that registers must allow: enough loads in flight to hide the memory latency. Threads that
// load three vectors each need fewer.
constexpr int kBlocks = 4, kBlocksOfThree = 3;

// With dense operands 40 or 48 registers, in f64 twice that.
template <class T, class Range>
inline constexpr int kBlocksOf = !std::is_same_v<Range, DenseRange> ? kBlocks
                                 : sizeof(T) == 8                   ? 3
                                                                    : 6;
template <class T, class Range>
inline constexpr int kBlocksOfThreeOf = !std::is_same_v<Range, DenseRange> ? kBlocksOfThree
                                        : sizeof(T) == 8                   ? 3
                                                                           : 5;

// Range and X: ElementRange and Operand, or DenseRange and DenseOperand<T>.
template <class T, class Range, class X>
__global__ void __launch_bounds__(kThreads, kBlocksOf<T, Range>)
    unary_forward(Range range, UnaryOp op, Accumulate<T> a, Accumulate<T> b, X x, X y) {
  constexpr int V = kVectorWidth<T>;
  const auto& at = place_of<V>(range);
  if (at.empty()) return;
  Accumulate<T> v[V];
  load<T>(x, at, v);
  pointwise::visit(op, [&]<UnaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = pointwise::Unary<o, Accumulate<T>>::forward(v[j], a, b);
  });
  store<T>(y, at, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    unary_derivative(ElementRange<kVectorWidth<T>> range, UnaryOp op, Accumulate<T> a, Accumulate<T> b, Operand x,
                     Operand dy, Operand dx) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Accumulate<T> v[V], g[V];
  load<T>(x, range, v);
  load<T>(dy, range, g);
  pointwise::visit(op, [&]<UnaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) g[j] = pointwise::Unary<o, Accumulate<T>>::backward(g[j], v[j], a, b);
  });
  store<T>(dx, range, g);
}

template <class T, class Range, class X>
__global__ void __launch_bounds__(kThreads, kBlocksOf<T, Range>)
    binary_forward(Range range, BinaryOp op, X x, X y, X z) {
  constexpr int V = kVectorWidth<T>;
  const auto& at = place_of<V>(range);
  if (at.empty()) return;
  Accumulate<T> u[V], v[V];
  load<T>(x, at, u);
  load<T>(y, at, v);
  pointwise::visit(op, [&]<BinaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) u[j] = pointwise::Binary<o, Accumulate<T>>::forward(u[j], v[j]);
  });
  store<T>(z, at, u);
}

// All loads precede all stores: dx or dy may be the same view as an input. An operand without data is a derivative that
// is not required.
template <class T, class Range, class X>
__global__ void __launch_bounds__(kThreads, kBlocksOfThreeOf<T, Range>)
    binary_derivatives(Range range, BinaryOp op, X x, X y, X dz, X dx, X dy) {
  constexpr int V = kVectorWidth<T>;
  const auto& at = place_of<V>(range);
  if (at.empty()) return;
  Accumulate<T> u[V], v[V], g[V], h[V];
  load<T>(x, at, u);
  load<T>(y, at, v);
  load<T>(dz, at, g);
  pointwise::visit(op, [&]<BinaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      h[j] = pointwise::Binary<o, Accumulate<T>>::d_dy(g[j], u[j], v[j]);
      g[j] = pointwise::Binary<o, Accumulate<T>>::d_dx(g[j], u[j], v[j]);
    }
  });
  if (dx.data) store<T>(dx, at, g);
  if (dy.data) store<T>(dy, at, h);
}

// A type that holds every value of T exactly.
template <class T>
using Exact = std::conditional_t<std::is_integral_v<T>, T, Accumulate<T>>;

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    compare_elements(ElementRange<kVectorWidth<T>> range, CompareOp op, Operand x, Operand y, Operand mask) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Exact<T> u[V], v[V];
  load<T>(x, range, u);
  load<T>(y, range, v);
  float result[V];
#pragma unroll
  for (int j = 0; j < V; ++j) result[j] = pointwise::holds(op, u[j], v[j]) ? 1.0f : 0.0f;
  store<uint8_t>(mask, range, result);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocksOfThree)
    choose_elements(ElementRange<kVectorWidth<T>> range, Operand mask, Operand x, Operand y, Operand z) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Exact<T> u[V], v[V];
  float first[V];
  load<T>(x, range, u);
  load<T>(y, range, v);
  load<uint8_t>(mask, range, first);
#pragma unroll
  for (int j = 0; j < V; ++j) u[j] = first[j] != 0.0f ? u[j] : v[j];
  store<T>(z, range, u);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    fill_masked(ElementRange<kVectorWidth<T>> range, Operand x, Operand mask, Accumulate<T> value, Operand y) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Accumulate<T> v[V];
  float masked[V];
  load<T>(x, range, v);
  load<uint8_t>(mask, range, masked);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = masked[j] != 0.0f ? value : v[j];
  store<T>(y, range, v);
}

// coordinates: an element's query row and its key.
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    mask_scores_kernel(ElementRange<kVectorWidth<T>> range, Operand x, Offsets<2> coordinates, AttentionMask mask,
                       int64_t keys, Accumulate<T> value, Operand y) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Accumulate<T> v[V];
  load<T>(x, range, v);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    int64_t at[2];
    coordinates.at(range.index(j), at);
    const bool unmasked = at[1] >= mask.first(at[0]) && at[1] < mask.end(at[0], keys);
    v[j] = unmasked ? v[j] : value;
  }
  store<T>(y, range, v);
}

// x, or a contiguous copy of a large x whose row-major neighbours lie far apart (a transposed view): the copy works by
// tiles and reads each cache line once.
Tensor make_contiguous_if_far(In x) {
  const Offsets<1> o = offsets(x);
  bool transposed = false;
  for (int a = 1; a < o.rank; ++a) transposed = transposed || o.axis(a).stride[0] == 1;
  return transposed && o.innermost().stride[0] > 1 && o.count > 16384 ? x.clone() : x;
}

void unary(UnaryOp op, double a, double b, In x, Out y) {
  visit_float(x.dtype(), "unary", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor from = make_contiguous_if_far(x);
    const Operand input = operand<V>(from), result = operand<V>(y);
    const ElementRange<V> range(result);
    if (const DenseRange all = dense_range(range, input, result); all.count > 0)
      launch_dense<V>(unary_forward<T, DenseRange, DenseOperand<T>>, all, op, a, b, dense<T>(input, all),
                      dense<T>(result, all));
    else
      launch_elements<V>(unary_forward<T, ElementRange<V>, Operand>, range, op, a, b, input, result);
  });
}

void unary_backward(UnaryOp op, double a, double b, In x, In dy, Out dx) {
  visit_float(x.dtype(), "unary_backward", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor from = make_contiguous_if_far(x), slopes = make_contiguous_if_far(dy);
    const Operand result = operand<V>(dx);
    launch_elements<V>(unary_derivative<T>, ElementRange<V>(result), op, a, b, operand<V>(from), operand<V>(slopes),
                       result);
  });
}

void binary(BinaryOp op, In x, In y, Out z) {
  visit_float(x.dtype(), "binary", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor left = make_contiguous_if_far(x), right = make_contiguous_if_far(y);
    const Operand first = operand<V>(left), second = operand<V>(right), result = operand<V>(z);
    const ElementRange<V> range(result);
    if (const DenseRange all = dense_range(range, first, second, result); all.count > 0)
      launch_dense<V>(binary_forward<T, DenseRange, DenseOperand<T>>, all, op, dense<T>(first, all),
                      dense<T>(second, all), dense<T>(result, all));
    else
      launch_elements<V>(binary_forward<T, ElementRange<V>, Operand>, range, op, first, second, result);
  });
}

void binary_backward(BinaryOp op, In x, In y, In dz, Out dx, Out dy) {
  if (!dx && !dy) return;
  visit_float(x.dtype(), "binary_backward", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor left = make_contiguous_if_far(x), right = make_contiguous_if_far(y),
                 slopes = make_contiguous_if_far(dz);
    Operand results[2] = {operand<V>(dx ? dx : dy), operand<V>(dy ? dy : dx)};
    ElementRange<V> range(results[0]);
    range.neighbours = range.neighbours && results[1].access == Access::contiguous;
    const Operand first = operand<V>(left), second = operand<V>(right), slope = operand<V>(slopes);
    if (!dx) results[0].data = nullptr;
    if (!dy) results[1].data = nullptr;
    const DenseRange all = dense_range(range, first, second, slope, results[0], results[1]);
    if (all.count > 0)
      launch_dense<V>(binary_derivatives<T, DenseRange, DenseOperand<T>>, all, op, dense<T>(first, all),
                      dense<T>(second, all), dense<T>(slope, all), dense<T>(results[0], all),
                      dense<T>(results[1], all));
    else
      launch_elements<V>(binary_derivatives<T, ElementRange<V>, Operand>, range, op, first, second, slope, results[0],
                         results[1]);
  });
}

void compare(CompareOp op, In x, In y, Out mask) {
  visit_any(x.dtype(), [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor left = make_contiguous_if_far(x), right = make_contiguous_if_far(y);
    const Operand result = operand<V>(mask);
    launch_elements<V>(compare_elements<T>, ElementRange<V>(result), op, operand<V>(left), operand<V>(right), result);
  });
}

void where(In mask, In x, In y, Out z) {
  visit_any(x.dtype(), [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor first = make_contiguous_if_far(x), second = make_contiguous_if_far(y);
    const Operand result = operand<V>(z);
    launch_elements<V>(choose_elements<T>, ElementRange<V>(result), operand<V>(mask), operand<V>(first),
                       operand<V>(second), result);
  });
}

void masked_fill(In x, In mask, double value, Out y) {
  visit_float(x.dtype(), "masked_fill", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor from = make_contiguous_if_far(x);
    const Operand result = operand<V>(y);
    launch_elements<V>(fill_masked<T>, ElementRange<V>(result), operand<V>(from), operand<V>(mask), value, result);
  });
}

void mask_scores(In x, const AttentionMask& mask, double value, Out y) {
  const int64_t queries = x.dim(-2), keys = x.dim(-1), count = x.numel();
  if (count == 0) return;
  const Axis<2> axes[] = {{count / (queries * keys), {0, 0}}, {queries, {1, 0}}, {keys, {0, 1}}};
  visit_float(x.dtype(), "mask_scores", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Tensor from = make_contiguous_if_far(x);
    const Operand result = operand<V>(y);
    launch_elements<V>(mask_scores_kernel<T>, ElementRange<V>(result), operand<V>(from), Offsets<2>(axes, 3), mask,
                       keys, value, result);
  });
}

}  // namespace

constinit const PointwiseKernels pointwise_kernels{
    .unary = unary,
    .unary_backward = unary_backward,
    .binary = binary,
    .binary_backward = binary_backward,
    .compare = compare,
    .where = where,
    .masked_fill = masked_fill,
    .mask_scores = mask_scores,
};

}  // namespace braid::cuda
