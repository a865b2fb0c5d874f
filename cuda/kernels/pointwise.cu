// Pointwise kernels: the formulas of tensor/kernels/pointwise.h, V elements to a thread (cuda/device/elementwise.cuh).
//
// Which formula it is, is decided inside the kernel: one branch for V elements, the same for all threads, costs nothing
// beside the memory that they wait for, and keeps the number of kernels small.
#include "braid/cuda/runtime/kernel.h"

#include "braid/cuda/device/elementwise.cuh"
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda {

namespace {

// The blocks per multiprocessor that the registers must leave room for: enough loads on their way to hide the memory's
// latency. Threads that load three vectors each need fewer.
constexpr int kBlocks = 4, kBlocksOfThree = 3;

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    unary_values(Share<kVector<T>> share, UnaryOp op, Accumulate<T> a, Accumulate<T> b, View x, View y) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V];
  read<T>(x, share, v);
  pointwise::visit(op, [&]<UnaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = pointwise::value<o>(v[j], a, b);
  });
  write<T>(y, share, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    unary_slopes(Share<kVector<T>> share, UnaryOp op, Accumulate<T> a, Accumulate<T> b, View x, View dy, View dx) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V], g[V];
  read<T>(x, share, v);
  read<T>(dy, share, g);
  pointwise::visit(op, [&]<UnaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) g[j] *= pointwise::slope<o>(v[j], a, b);
  });
  write<T>(dx, share, g);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    binary_values(Share<kVector<T>> share, BinaryOp op, View x, View y, View z) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> u[V], v[V];
  read<T>(x, share, u);
  read<T>(y, share, v);
  pointwise::visit(op, [&]<BinaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) u[j] = pointwise::value<o>(u[j], v[j]);
  });
  write<T>(z, share, u);
}

// Everything is read before anything is written: dx or dy may be the same view as an input. A view without data is a
// derivative that nobody wants.
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocksOfThree)
    binary_slopes(Share<kVector<T>> share, BinaryOp op, View x, View y, View dz, View dx, View dy) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> u[V], v[V], g[V], h[V];
  read<T>(x, share, u);
  read<T>(y, share, v);
  read<T>(dz, share, g);
  pointwise::visit(op, [&]<BinaryOp o>() {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      h[j] = g[j] * pointwise::slope_y<o>(u[j], v[j]);
      g[j] *= pointwise::slope_x<o>(u[j], v[j]);
    }
  });
  if (dx.data) write<T>(dx, share, g);
  if (dy.data) write<T>(dy, share, h);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    fill_masked(Share<kVector<T>> share, View x, View mask, Accumulate<T> value, View y) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V];
  float hidden[V];
  read<T>(x, share, v);
  read<uint8_t>(mask, share, hidden);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = hidden[j] != 0.0f ? value : v[j];
  write<T>(y, share, v);
}

// coordinates: an element's query row and its key.
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    fill_masked_scores(Share<kVector<T>> share, View x, Offsets<2> coordinates, AttentionMask mask, int64_t keys,
                       Accumulate<T> value, View y) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V];
  read<T>(x, share, v);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    int64_t at[2];
    coordinates.at(share.index(j), at);
    const bool seen = at[1] >= mask.first(at[0]) && at[1] < mask.end(at[0], keys);
    v[j] = seen ? v[j] : value;
  }
  write<T>(y, share, v);
}

// x, or a dense copy of a large x whose neighbours in row-major order lie far apart (a transposed view): the copy goes
// by tiles and reads each cache line once.
Tensor near(In x) {
  const Offsets<1> o = offsets(x);
  bool transposed = false;
  for (int a = 1; a < o.rank; ++a) transposed = transposed || o.axis(a).stride[0] == 1;
  return transposed && o.innermost().stride[0] > 1 && o.count > 16384 ? x.clone() : x;
}

}  // namespace

void unary(UnaryOp op, double a, double b, In x, Out y) {
  visit_float(x.dtype(), "unary", [&]<class T>() {
    constexpr int V = kVector<T>;
    const Tensor from = near(x);
    const View result = view<V>(y);
    launch_shares<V>(unary_values<T>, Share<V>(result), op, a, b, view<V>(from), result);
  });
}

void unary_backward(UnaryOp op, double a, double b, In x, In dy, Out dx) {
  visit_float(x.dtype(), "unary_backward", [&]<class T>() {
    constexpr int V = kVector<T>;
    const Tensor from = near(x), slopes = near(dy);
    const View result = view<V>(dx);
    launch_shares<V>(unary_slopes<T>, Share<V>(result), op, a, b, view<V>(from), view<V>(slopes), result);
  });
}

void binary(BinaryOp op, In x, In y, Out z) {
  visit_float(x.dtype(), "binary", [&]<class T>() {
    constexpr int V = kVector<T>;
    const Tensor left = near(x), right = near(y);
    const View result = view<V>(z);
    launch_shares<V>(binary_values<T>, Share<V>(result), op, view<V>(left), view<V>(right), result);
  });
}

void binary_backward(BinaryOp op, In x, In y, In dz, Out dx, Out dy) {
  if (!dx && !dy) return;
  visit_float(x.dtype(), "binary_backward", [&]<class T>() {
    constexpr int V = kVector<T>;
    const Tensor left = near(x), right = near(y), slopes = near(dz);
    View results[2] = {view<V>(dx ? dx : dy), view<V>(dy ? dy : dx)};
    Share<V> share(results[0]);
    share.neighbours = share.neighbours && results[1].access == Access::dense;
    if (!dx) results[0].data = nullptr;
    if (!dy) results[1].data = nullptr;
    launch_shares<V>(binary_slopes<T>, share, op, view<V>(left), view<V>(right), view<V>(slopes), results[0],
                     results[1]);
  });
}

void masked_fill(In x, In mask, double value, Out y) {
  visit_float(x.dtype(), "masked_fill", [&]<class T>() {
    constexpr int V = kVector<T>;
    const Tensor from = near(x);
    const View result = view<V>(y);
    launch_shares<V>(fill_masked<T>, Share<V>(result), view<V>(from), view<V>(mask), value, result);
  });
}

void mask_scores(In x, const AttentionMask& v, double value, Out y) {
  const int64_t queries = x.dim(-2), keys = x.dim(-1), count = x.numel();
  if (count == 0) return;
  const Axis<2> axes[] = {{count / (queries * keys), {0, 0}}, {queries, {1, 0}}, {keys, {0, 1}}};
  visit_float(x.dtype(), "mask_scores", [&]<class T>() {
    constexpr int V = kVector<T>;
    const Tensor from = near(x);
    const View result = view<V>(y);
    launch_shares<V>(fill_masked_scores<T>, Share<V>(result), view<V>(from), Offsets<2>(axes, 3), v, keys, value,
                     result);
  });
}

}  // namespace braid::cuda
