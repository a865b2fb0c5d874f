// Rotary position embedding: pairs (e, e + h) of the first 2h channels are rotated by an angle a(t, e); the rest is
// copied.
//   y[e] = x[e] cos a - x[e+h] sin a,   y[e+h] = x[e+h] cos a + x[e] sin a;   inverse: a -> -a, which is also the
//   derivative.
#include <algorithm>

#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/rope.h"

namespace braid::cuda {

namespace {

struct RopeShape {
  int64_t steps, heads, d, h;
  int64_t table_batch;  // elements of a table between samples, 0 when they share it
};

constexpr int kThreads = 256;

// A block has the heads of one token (b, t); a thread rotates a pack of first channels with its pack of second ones.
template <class T>
__global__ void __launch_bounds__(kThreads)
    rope_kernel(const T* x, const Accumulate<T>* cosine, const Accumulate<T>* sine, Accumulate<T> sign, RopeShape shape,
                T* y) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  int64_t r = blockIdx.x, h = shape.h, rest = shape.d - 2 * h;
  int64_t table = r / shape.steps * shape.table_batch + r % shape.steps * h;
  int rotated = static_cast<int>((h + W - 1) / W), copied = static_cast<int>((rest + W - 1) / W);
  int packs = rotated + copied, heads = static_cast<int>(shape.heads);
  for (int u = static_cast<int>(threadIdx.x); u < heads * packs; u += static_cast<int>(blockDim.x)) {
    int64_t row = (r * heads + u / packs) * shape.d;
    int pack = u % packs;
    if (pack >= rotated) {
      int64_t e = int64_t{pack - rotated} * W;
      store_pack(y + row + 2 * h, e, rest, load_pack<W>(x + row + 2 * h, e, rest));
      continue;
    }
    int64_t e = int64_t{pack} * W;
    Pack<T> first = load_pack<W>(x + row, e, h), second = load_pack<W>(x + row + h, e, h);
    Pack<A, W> c = load_pack<W>(cosine + table, e, h), s = load_pack<W>(sine + table, e, h);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      A a = A(first[j]), b = A(second[j]), sine_j = sign * s[j];
      first[j] = T(a * c[j] - b * sine_j);
      second[j] = T(b * c[j] + a * sine_j);
    }
    store_pack(y + row, e, h, first);
    store_pack(y + row + h, e, h, second);
  }
}

void rope(In x, In cosine, In sine, bool inverse, Out y) {
  if (x.numel() == 0) return;
  visit_float(x.dtype(), "rope", [&]<class T>() {
    using A = Accumulate<T>;
    RopeShape shape{.steps = x.dim(1), .heads = x.dim(2), .d = x.dim(3), .h = cosine.dim(2), .table_batch = 0};
    if (cosine.dim(0) != 1) shape.table_batch = shape.steps * shape.h;
    int64_t packs = shape.heads * ((shape.d + 1) / 2 + kVectorWidth<T> - 1) / kVectorWidth<T>;
    unsigned block = static_cast<unsigned>(std::clamp<int64_t>((packs + 31) / 32 * 32, 32, kThreads));
    launch(rope_kernel<T>, {.grid = static_cast<unsigned>(x.dim(0) * x.dim(1)), .block = block}, x.data<T>(),
           cosine.data<A>(), sine.data<A>(), A(inverse ? -1 : 1), shape, y.mutable_data<T>());
  });
}

}  // namespace

constinit const RopeKernels rope_kernels{
    .rotate = rope,
};

}  // namespace braid::cuda
