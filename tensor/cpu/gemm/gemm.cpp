// The choice of a kernel by shape, the cut of a product into parts, and products by oneDNN.
// The choice comes from the table in tests/bench/gemm.md.
#include "braid/tensor/cpu/gemm/gemm.h"

#include <algorithm>
#include <type_traits>
#ifdef BRAID_HAVE_DNNL
#include <dnnl.h>

#include "braid/tensor/cpu/gemm/dnnl_call.h"
#endif

#include "braid/tensor/base/integers.h"
#include "braid/tensor/error.h"
#include "braid/tensor/tensor.h"

#ifndef BRAID_INSTRUCTION_SET
#define BRAID_INSTRUCTION_SET target
#endif

namespace braid::cpu {
namespace {

#ifdef BRAID_HAVE_DNNL
void gemm_dnnl(const Gemm<float>& g) {
  const DnnlCall call("a matrix product");
  const dnnl_status_t status = dnnl_sgemm(g.ta ? 'T' : 'N', g.tb ? 'T' : 'N', g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b,
                                          g.ldb, g.beta, g.c, g.ldc);
  check(status == dnnl_success, "gemm", [&] {
    return str("oneDNN failed on a product of ", g.m, " x ", g.k, " by ", g.k, " x ", g.n, " (status ", int(status),
               "); configure with -DBRAID_DNNL=OFF to do without oneDNN");
  });
}
#endif

template <class T>
constexpr GemmKernel<T> kVector{"vector", gemm_vector<T>};
template <class T>
constexpr GemmKernel<T> kNative{"native", gemm_native<T>};
template <class T>
constexpr GemmKernel<T> kPacked{"packed", gemm_packed<T>, gemm_packed_in_parallel<T>};

#ifdef BRAID_HAVE_DNNL
constexpr GemmKernel<float> kDnnl{"dnnl", gemm_dnnl};
#endif

#ifdef __AVX512F__
constexpr bool kPacks = false;  // oneDNN, or our kernel for small products, was faster where it was measured
#else
constexpr bool kPacks = true;
#endif

}  // namespace

bool packs(int64_t m, int64_t n, int64_t k) { return kPacks && m >= 96 && n >= 96 && k >= 32; }

bool prefers_rows_of_b([[maybe_unused]] int64_t m, [[maybe_unused]] int64_t n, [[maybe_unused]] int64_t k) {
#if defined(BRAID_HAVE_DNNL) && defined(__AVX512F__)
  return m >= 512 && n >= 128 && k >= 128;
#else
  return false;
#endif
}

namespace {

template <class T>
const GemmKernel<T>& choose([[maybe_unused]] bool tb, int64_t m, int64_t n, int64_t k) {
  const double work = double(m) * double(n) * double(k);
  // Matrix times vector; very short ones do not pay for their own loop.
  if ((m == 1 || n == 1) && work >= 4096) return kVector<T>;
#ifdef BRAID_HAVE_DNNL
  // oneDNN has the fastest inner loop, but a call costs about as much as a product of 64 x 64 x 64, few rows or columns
  // leave its blocks half empty, and it copies a transposed B slowly. With AVX2 and rows a power of two long it takes
  // twice as long on tiles of C as on all of it.
  if constexpr (std::is_same_v<T, float>) {
#ifdef __AVX2__
    if (packs(m, n, k)) return kPacked<T>;
#endif
    const bool wide = tb ? m >= 96 && n >= 96 : m >= 8 && n >= 32 && k >= 16;
    if (wide && work > 64.0 * 64.0 * 64.0) return kDnnl;
  }
#endif
  return packs(m, n, k) ? kPacked<T> : kNative<T>;
}

// The parts of a product that threads share: tiles of C, and slices of the depth, whose sums are added up afterwards.
struct Parts {
  int64_t rows, columns;  // how many pieces each side of C is cut into
  int64_t slices = 1;
  int64_t tiles() const { return rows * columns; }
  int64_t count() const { return tiles() * slices; }
};

// The parts of one of `count` products. They depend on the shape alone, so they must do for few threads and for many. A
// kernel copies its strips of A and B once a tile: wide tiles are efficient, also with few rows where A lies in rows.
// Slices cost some percent, and are for a small C of great depth alone, the gradient of a weight. With few rows the
// time is that of reading B (tests/bench/gemm.md has the measurements).
Parts parts_of(int64_t count, bool ta, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t side = 512, least = 32;
  constexpr double wake = 1.5e6;  // multiply-adds that pay for waking a thread
  const double work = double(m + 8) * double(n) * double(k);
  const int64_t many = ta ? 32 : 64, least_rows = ta ? 128 : 64;
  Parts p{detail::ceil_div(m, side), detail::ceil_div(n, side)};
  for (;;) {
    const double parts = double(count) * double(p.count()), each = work / double(p.count());
    const int64_t tall = m / p.rows, wide = n / p.columns;
    const bool few = parts < 4 && each > wake, some = parts < 12 && each > 2 * wake,
               more = parts < double(many) && each > 2 * wake;
    const bool deep = some && k >= 4096, rows_first = p.slices > 1 || !deep;
    if (tall >= 2 * least_rows ? few || more : some && tall >= 128 && rows_first)
      p.rows *= 2;
    else if (deep && p.slices < 4)
      p.slices *= 2;
    else if ((few || (more && m <= 16)) && std::max(tall, wide) >= 2 * least)
      (tall >= wide ? p.rows : p.columns) *= 2;
    else
      return p;
  }
}

// Where piece `piece` of [0, size) begins: at multiples of 48, which oneDNN's kernels for AVX-512 and our own compute
// at once, or of 16, where the pieces are large.
int64_t cut(int64_t size, int64_t piece, int64_t pieces) {
  if (piece == pieces) return size;
  const int64_t at = size * piece / pieces, unit = size >= 192 * pieces ? 48 : size >= 32 * pieces ? 16 : 1;
  return at / unit * unit;
}

// Tile `tile` of C, over slice `slice` of the depth.
template <class T>
Gemm<T> part_of(const Gemm<T>& g, const Parts& p, int64_t tile, int64_t slice) {
  const int64_t r = tile / p.columns, s = tile % p.columns;
  const int64_t i = cut(g.m, r, p.rows), j = cut(g.n, s, p.columns), depth = cut(g.k, slice, p.slices);
  Gemm<T> h = g;
  h.m = cut(g.m, r + 1, p.rows) - i;
  h.n = cut(g.n, s + 1, p.columns) - j;
  h.k = cut(g.k, slice + 1, p.slices) - depth;
  if (g.k > 0) {  // otherwise a and b may be null
    h.a += g.ta ? depth * g.lda + i : i * g.lda + depth;
    h.b += g.tb ? j * g.ldb + depth : depth * g.ldb + j;
  }
  h.c += i * g.ldc + j;
  if (g.start) h.start += j;
  return h;
}

// k == 0 or alpha == 0: nothing to multiply.
template <class T>
void scale(const Gemm<T>& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      T& out = g.c[i * g.ldc + j];
      out = g.beta == T(0) ? T(0) : g.beta * out;
    }
}

}  // namespace

template <class T>
void gemm_batched_with(const GemmKernel<T>& kernel, int64_t count, FunctionRef<GemmOperands<T>(int64_t i)> operands,
                       const Gemm<T>& shape) {
  if (count <= 0 || shape.m <= 0 || shape.n <= 0) return;
  const bool empty = shape.k <= 0 || shape.alpha == T(0);
  const auto product = [&](int64_t i) {
    const GemmOperands<T> at = operands(i);
    Gemm<T> g = shape;
    g.a = at.a, g.b = at.b, g.c = at.c;
    return g;
  };
  if (kernel.in_parallel && !empty) {
    const auto on_one_thread = [&](int64_t i) {
      const Gemm<T> g = product(i);
      for (int64_t r = 0; g.start && r < g.m; ++r) std::copy_n(g.start, g.n, g.c + r * g.ldc);
      kernel.run(g);
    };
    for_packed(count, shape.m, shape.n, shape.k, on_one_thread, [&](int64_t i) { kernel.in_parallel(product(i)); });
    return;
  }
  const Parts parts = parts_of(count, shape.ta, shape.m, shape.n, shape.k);
  // The sums of the slices behind the first: (count, slices - 1, m, n).
  const int64_t size = shape.m * shape.n, more = parts.slices - 1;
  Tensor behind;
  if (more > 0) behind = braid::empty({count * more * size}, dtype_of<T>());
  T* const sums = more > 0 ? behind.mutable_data<T>() : nullptr;
  // Tiny products go to the threads in handfuls of some 100 000 multiply-adds.
  const double work = double(size) * double(std::max<int64_t>(shape.k, 1)) / double(parts.count());
  const int64_t grain = std::max<int64_t>(1, int64_t(1e5 / work));
  parallel_for(count * parts.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t of = i / parts.count(), slice = i % parts.slices, tile = i / parts.slices % parts.tiles();
      Gemm<T> g = product(of);
      if (slice > 0) g.c = sums + (of * more + slice - 1) * size, g.ldc = g.n, g.beta = T(0), g.start = nullptr;
      if (parts.count() > 1) g = part_of(g, parts, tile, slice);
      for (int64_t r = 0; g.start && r < g.m; ++r) std::copy_n(g.start, g.n, g.c + r * g.ldc);
      if (empty)
        scale(g);
      else
        kernel.run(g);
    }
  });
  if (more == 0) return;
  parallel_for(count * shape.m, grain_for(shape.n * more), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t of = i / shape.m, row = i % shape.m;
      T* const c = operands(of).c + row * shape.ldc;
      for (int64_t slice = 0; slice < more; ++slice) {
        const T* const sum = sums + (of * more + slice) * size + row * shape.n;
        for (int64_t j = 0; j < shape.n; ++j) c[j] += sum[j];
      }
    }
  });
}

template <class T>
void gemm_with(const GemmKernel<T>& kernel, const Gemm<T>& g) {
  const GemmOperands<T> at{g.a, g.b, g.c};
  gemm_batched_with<T>(
      kernel, 1, [&](int64_t) { return at; }, g);
}

template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          T beta, T* c, int64_t ldc, const T* start) {
  gemm_with(choose<T>(tb, m, n, k), Gemm<T>{ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, start});
}

template <class T>
void gemm_batched(int64_t count, FunctionRef<GemmOperands<T>(int64_t i)> operands, bool ta, bool tb, int64_t m,
                  int64_t n, int64_t k, T alpha, int64_t lda, int64_t ldb, T beta, int64_t ldc, const T* start) {
  gemm_batched_with<T>(choose<T>(tb, m, n, k), count, operands,
                       {ta, tb, m, n, k, alpha, nullptr, lda, nullptr, ldb, beta, nullptr, ldc, start});
}

#define BRAID_INSTANTIATE(T)                                                                                           \
  template void gemm(bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*, int64_t,   \
                     const T*);                                                                                        \
  template void gemm_batched(int64_t, FunctionRef<GemmOperands<T>(int64_t)>, bool, bool, int64_t, int64_t, int64_t, T, \
                             int64_t, int64_t, T, int64_t, const T*);                                                  \
  template void gemm_with(const GemmKernel<T>&, const Gemm<T>&);                                                       \
  template void gemm_batched_with(const GemmKernel<T>&, int64_t, FunctionRef<GemmOperands<T>(int64_t)>, const Gemm<T>&);
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
#undef BRAID_INSTANTIATE

namespace BRAID_INSTRUCTION_SET {

const GemmTables& products();  // declared for each instruction set in tensor/cpu/instruction_sets.cpp

const GemmTables& products() {
#ifdef BRAID_HAVE_DNNL
  static constexpr GemmKernel<float> f32[] = {kVector<float>, kNative<float>, kPacked<float>, kDnnl};
#else
  static constexpr GemmKernel<float> f32[] = {kVector<float>, kNative<float>, kPacked<float>};
#endif
  static constexpr GemmKernel<double> f64[] = {kVector<double>, kNative<double>, kPacked<double>};
  static constexpr GemmTables tables{kPacks, {f32, choose<float>}, {f64, choose<double>}};
  return tables;
}

}  // namespace BRAID_INSTRUCTION_SET

}  // namespace braid::cpu
