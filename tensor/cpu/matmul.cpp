// Batched matrix products on top of gemm.h: finds an order that GEMM can read, copies where another is faster, merges
// batch axes that form one large matrix, and converts 16-bit types by panels: multiplied and summed in f32, rounded
// once. Where the processor multiplies bf16 itself, gemm/bf16.h does.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "braid/tensor/base/strict_kernels.h"
#include "braid/tensor/cpu/gemm/bf16.h"
#include "braid/tensor/cpu/gemm/gemm.h"
#include "braid/tensor/cpu/row_invariant/row_invariant.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/matmul.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/row_invariant.h"
#include "braid/tensor/trace_device.h"

namespace braid::cpu {

namespace {

struct Axis {
  int64_t size, x, z;  // strides of x and z; y is contiguous, so product i of the batch starts at i * m * n
};

// count products y (m, n) = x (m, k) z (k, n). xr, xc, zr, zc: strides along rows and columns.
struct Problem {
  int64_t m, n, k, xr, xc, zr, zc;
  std::array<Axis, Shape::max_rank> axes{};
  int rank = 0;

  int64_t count() const {
    int64_t c = 1;
    for (int a = 0; a < rank; ++a) c *= axes[static_cast<size_t>(a)].size;
    return c;
  }
  // Where the operands of product i start.
  std::pair<int64_t, int64_t> at(int64_t i) const {
    int64_t x = 0, z = 0;
    for (int a = rank - 1; a >= 0; --a) {
      const Axis& axis = axes[static_cast<size_t>(a)];
      x += i % axis.size * axis.x;
      z += i % axis.size * axis.z;
      i /= axis.size;
    }
    return {x, z};
  }
};

struct GemmOrder {
  bool readable = false, transposed = false;
  int64_t ld = 0;
};

// How GEMM can read a matrix with these strides: row by row, column by column, or not at all.
GemmOrder gemm_order(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  if ((columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns)) {
    return {true, false, rows == 1 ? columns : row_stride};
  }
  if ((rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows)) {
    return {true, true, columns == 1 ? rows : column_stride};
  }
  return {};
}

// x itself when GEMM can read it, otherwise a contiguous copy in which repeated batch axes stay repeated.
Tensor readable(In x) {
  if (gemm_order(x.dim(-2), x.dim(-1), x.strides()[-2], x.strides()[-1]).readable) return x.detach();
  Shape once = x.shape();
  for (int a = 0; a < x.rank() - 2; ++a) {
    if (x.strides()[a] == 0) once[a] = 1;
  }
  return x.view(once, x.strides(), 0).clone().expanded(x.shape());
}

Problem plan(In x, In z) {
  Problem p{x.dim(-2), z.dim(-1), x.dim(-1), x.strides()[-2], x.strides()[-1], z.strides()[-2], z.strides()[-1]};
  for (int a = 0; a < x.rank() - 2; ++a) {
    if (x.dim(a) == 1) continue;
    Axis axis{x.dim(a), x.strides()[a], z.strides()[a]};
    if (p.rank > 0) {
      Axis& outer = p.axes[static_cast<size_t>(p.rank - 1)];
      if (outer.x == axis.size * axis.x && outer.z == axis.size * axis.z) {
        outer = {outer.size * axis.size, axis.x, axis.z};
        continue;
      }
    }
    p.axes[static_cast<size_t>(p.rank++)] = axis;
  }
  // (B, T, K) x (K, N) is (B*T, K) x (K, N): an innermost batch axis along which z repeats and x's rows run on.
  while (p.rank > 0) {
    const Axis& inner = p.axes[static_cast<size_t>(p.rank - 1)];
    int64_t row_stride = p.m == 1 ? inner.x : p.xr;
    if (inner.z != 0 || (p.m != 1 && inner.x != p.m * p.xr)) break;
    if (!gemm_order(p.m * inner.size, p.k, row_stride, p.xc).readable) break;
    p.m *= inner.size;
    p.xr = row_stride;
    --p.rank;
  }
  return p;
}

// y = x z, y + x z, or start + x z where a row (n) is given.
template <class T>
void multiply(const Problem& p, const T* x, const T* z, bool accumulate, const T* start, T* y) {
  GemmOrder lx = gemm_order(p.m, p.k, p.xr, p.xc), lz = gemm_order(p.k, p.n, p.zr, p.zc);
  T beta = accumulate || start ? T(1) : T(0);
  if (p.count() == 1) {
    gemm<T>(lx.transposed, lz.transposed, p.m, p.n, p.k, T(1), x, lx.ld, z, lz.ld, beta, y, p.n, start);
    return;
  }
  auto operands = [&](int64_t i) {
    auto [ox, oz] = p.at(i);
    return GemmOperands<T>{x + ox, z + oz, y + i * p.m * p.n};
  };
  gemm_batched<T>(p.count(), operands, lx.transposed, lz.transposed, p.m, p.n, p.k, T(1), lx.ld, lz.ld, beta, p.n,
                  start);
}

// 16-bit operands, Y = T or f32. A panel is at most kPanel elements where the inner size allows; small products go in
// groups.
constexpr int64_t kPanel = int64_t{1} << 22;

// Rows of x that are too few to pay for packing z, columns of W, for the processor's products of bf16.
constexpr int64_t kFewRows = 8;

template <class T, class Y>
void multiply_16_bit(const Problem& p, const T* x, const T* z, bool accumulate, const T* start, Y* y) {
  if (TraceDevice::current()) return;  // its panels are no tensors
  GemmOrder lx = gemm_order(p.m, p.k, p.xr, p.xc), lz = gemm_order(p.k, p.n, p.zr, p.zc);
  if (packs(p.m, p.n, p.k)) {
    const auto product = [&](int64_t i) {
      const auto [ox, oz] = p.at(i);
      return Gemm16<T, Y>{
          lx.transposed,     lz.transposed, p.m,  p.n, p.k, x + ox, lx.ld, z + oz, lz.ld, accumulate ? 1.0f : 0.0f,
          y + i * p.m * p.n, p.n,           start};
    };
    return for_packed(
        p.count(), p.m, p.n, p.k, [&](int64_t i) { gemm_packed(product(i)); },
        [&](int64_t i) { gemm_packed_in_parallel(product(i)); });
  }
  int64_t fit = std::max<int64_t>(64, kPanel / p.k), count = p.count();
  int64_t mb = std::min({p.m, fit, int64_t{2048}}), nb = std::min({p.n, fit, int64_t{4096}});
  int64_t group = 1;
  if (mb == p.m && nb == p.n) group = std::clamp<int64_t>(kPanel / std::max({mb * p.k, nb * p.k, mb * nb}), 1, count);
  auto a = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(group * mb * p.k));
  auto b = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(group * nb * p.k));
  auto c = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(group * mb * nb));
  std::vector<float> row(static_cast<size_t>(start ? p.n : 0));
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<float>(start[j]);

  // Copies `rows` stored rows of `length` per product, converting, between from(product, row) and to(product, row).
  auto convert = [](int64_t products, int64_t rows, int64_t length, auto from, auto to) {
    parallel_for(products * rows, grain_for(2 * length), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        auto source = from(r / rows, r % rows);
        auto target = to(r / rows, r % rows);
        using Target = std::remove_reference_t<decltype(*target)>;
        for (int64_t j = 0; j < length; ++j) target[j] = Target(static_cast<float>(source[j]));
      }
    });
  };
  for (int64_t first = 0; first < count; first += group) {
    int64_t g = std::min(group, count - first);
    for (int64_t j = 0; j < p.n; j += nb) {
      int64_t w = std::min(nb, p.n - j), z_rows = lz.transposed ? w : p.k, z_length = lz.transposed ? p.k : w;
      convert(
          g, z_rows, z_length, [&](int64_t q, int64_t r) { return z + p.at(first + q).second + j * p.zc + r * lz.ld; },
          [&](int64_t q, int64_t r) { return b.get() + (q * z_rows + r) * z_length; });
      for (int64_t i = 0; i < p.m; i += mb) {
        int64_t h = std::min(mb, p.m - i), x_rows = lx.transposed ? p.k : h, x_length = lx.transposed ? h : p.k;
        convert(
            g, x_rows, x_length, [&](int64_t q, int64_t r) { return x + p.at(first + q).first + i * p.xr + r * lx.ld; },
            [&](int64_t q, int64_t r) { return a.get() + (q * x_rows + r) * x_length; });
        auto result = [&](int64_t q, int64_t r) { return y + ((first + q) * p.m + i + r) * p.n + j; };
        auto panel = [&](int64_t q, int64_t r) { return c.get() + (q * h + r) * w; };
        if (accumulate) convert(g, h, w, result, panel);
        auto operands = [&](int64_t q) {
          return GemmOperands<float>{a.get() + q * h * p.k, b.get() + q * w * p.k, c.get() + q * h * w};
        };
        gemm_batched<float>(g, operands, lx.transposed, lz.transposed, h, w, p.k, 1.0f, x_length, z_length,
                            accumulate || start ? 1.0f : 0.0f, w, start ? row.data() + j : nullptr);
        convert(g, h, w, panel, result);
      }
    }
  }
}

// The products of strict kernels: an element of y is one chain over slices of ascending depth, whatever the shape, the
// layout of the operands, the threads and the instruction set are.
template <class T, class Y>
void multiply_strict(const Problem& p, const T* x, const T* z, bool accumulate, const T* start, Y* y) {
  const GemmOrder lx = gemm_order(p.m, p.k, p.xr, p.xc), lz = gemm_order(p.k, p.n, p.zr, p.zc);
  const auto product = [&](int64_t i) {
    const auto [ox, oz] = p.at(i);
    Y* to = y + i * p.m * p.n;
    if constexpr (std::is_same_v<T, Y>) {
      for (int64_t r = 0; start && sizeof(T) > 2 && r < p.m; ++r) std::copy_n(start, p.n, to + r * p.n);
    }
    if constexpr (sizeof(T) == 2)
      return Gemm16<T, Y>{
          lx.transposed, lz.transposed, p.m, p.n, p.k, x + ox, lx.ld, z + oz, lz.ld, accumulate ? 1.0f : 0.0f, to,
          p.n,           start};
    else
      return Gemm<T>{lx.transposed,
                     lz.transposed,
                     p.m,
                     p.n,
                     p.k,
                     T(1),
                     x + ox,
                     lx.ld,
                     z + oz,
                     lz.ld,
                     accumulate || start ? T(1) : T(0),
                     to,
                     p.n};
  };
  for_packed(
      p.count(), p.m, p.n, p.k, [&](int64_t i) { gemm_packed(product(i)); },
      [&](int64_t i) { gemm_packed_in_parallel(product(i)); });
}

// The same with the bits of a row independent of the other rows (tensor/row_invariant.h).
template <class T, class Y>
void multiply_row_invariant(const Problem& p, const T* x, const T* z, bool accumulate, const T* bias, Y* y) {
  const bool along = p.zr == 1 || p.k == 1;  // columns of z, the rows of W, are contiguous
  row_invariant::multiply<T, Y>({.count = p.count(),
                                 .m = p.m,
                                 .n = p.n,
                                 .k = p.k,
                                 .x_row = p.xr,
                                 .x_depth = p.xc,
                                 .w_row = along ? p.zc : 1,
                                 .w_depth = along ? 1 : p.zr,
                                 .bias = bias,
                                 .accumulate = accumulate,
                                 .y = y},
                                [&](int64_t i) {
                                  auto [ox, oz] = p.at(i);
                                  return row_invariant::Operands<T>{x + ox, z + oz};
                                });
}

// The same with the processor's instructions for bf16. A few rows are not worth packing a whole W for.
template <class Y>
void multiply_pairs(const Problem& p, const bfloat16* x, const bfloat16* z, bool accumulate, const bfloat16* bias,
                    Y* y) {
  if (p.m <= kFewRows && p.zr == 1 && p.k > 1 && !bf16_kernels().multiply_few)
    return multiply_row_invariant(p, x, z, accumulate, bias, y);
  multiply_bf16<Y>({.count = p.count(),
                    .m = p.m,
                    .n = p.n,
                    .k = p.k,
                    .x_row = p.xr,
                    .x_depth = p.xc,
                    .z_depth = p.zr,
                    .z_column = p.zc,
                    .bias = bias,
                    .accumulate = accumulate,
                    .y = y},
                   [&](int64_t i) {
                     auto [ox, oz] = p.at(i);
                     return Bf16Operands{x + ox, z + oz};
                   });
}

// A copy of z, which is f32, in rows; p then describes it. Rows that were a multiple of 512 bytes apart would share a
// few sets of the first-level cache: they get a cache line more.
Tensor copied_to_rows(In z, Problem& p) {
  const Tensor padded = empty({p.k, p.n % 128 == 0 ? p.n + 16 : p.n}, z.dtype());
  Tensor rows = padded.sliced(1, 0, p.n);
  cpu_backend().copy.strided(z.view({p.k, p.n}, {p.zr, p.zc}, 0), rows);
  p.zr = rows.strides()[0], p.zc = 1;
  return rows;
}

// bias (N), contiguous, of y's type, or an empty handle.
void products(In x, In z, bool accumulate, In bias, Out y) {
  if (y.numel() == 0) return;
  if (TracedFlops* flops = detail::counted_flops) [[unlikely]]
    flops->add_product(y.numel(), x.dim(-1));
  if (x.dim(-1) == 0) {  // an empty sum
    if (bias) return y.copy_(bias.expanded(y.shape()));
    if (!accumulate) cpu_backend().copy.fill(0, y);
    return;
  }
  Tensor a = readable(x), b = readable(z);
  Problem p = plan(a, b);
  if (x.dtype() == DType::f32 && p.zr == 1 && p.count() == 1 && !row_invariant_products() && !kStrict &&
      prefers_rows_of_b(p.m, p.n, p.k)) {
    b = copied_to_rows(b, p);
  }
  visit_float(x.dtype(), "matmul", [&]<class T>() {
    const T* start = bias ? bias.data<T>() : nullptr;
    if constexpr (kStrict) {
      if (TraceDevice::current()) return;
      if constexpr (sizeof(T) == 2) {
        if (y.dtype() == DType::f32)
          return multiply_strict(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<float>());
      }
      return multiply_strict(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<T>());
    }
    // Kernels for a few rows and for many that agree to the bit are row-invariant by themselves.
    const bool any_kernel = std::is_same_v<T, bfloat16> && bf16_kernels().multiply_few;
    if (row_invariant_products() && !any_kernel) {
      if constexpr (sizeof(T) == 2) {
        if (y.dtype() == DType::f32)
          return multiply_row_invariant(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<float>());
      }
      return multiply_row_invariant(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<T>());
    }
    if constexpr (std::is_same_v<T, bfloat16>) {
      if (bf16_kernels().multiply) {
        if (y.dtype() == DType::f32)
          return multiply_pairs(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<float>());
        return multiply_pairs(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<T>());
      }
    }
    if constexpr (sizeof(T) == 2) {
      if (y.dtype() == DType::f32) {
        multiply_16_bit(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<float>());
      } else {
        multiply_16_bit(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<T>());
      }
    } else {
      multiply<T>(p, a.data<T>(), b.data<T>(), accumulate, start, y.mutable_data<T>());
    }
  });
}

void matmul(In x, In z, bool accumulate, Out y) { products(x, z, accumulate, {}, y); }

void linear(In x, In weight, In bias, Out y) {
  Shape repeated = x.shape();
  repeated[-2] = weight.dim(1);
  repeated[-1] = weight.dim(0);
  products(x, weight.transposed().expanded(repeated), false, bias, y);
}

}  // namespace

constinit const MatmulKernels matmul_kernels{
    .product = matmul,
    .linear = linear,
};

}  // namespace braid::cpu
