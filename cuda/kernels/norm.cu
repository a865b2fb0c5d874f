// RMSNorm and LayerNorm over the last axis (D), and their derivatives.
//
// RMSNorm:    y = xh w,      xh = x rstd,           rstd = 1 / sqrt(mean(x^2) + eps)
//             dx = rstd (g - xh mean(g xh)),             g = dy w;   dw = sum over rows of dy xh
// LayerNorm:  y = xh w + b,  xh = (x - mean) rstd,  rstd = 1 / sqrt(mean((x - mean)^2) + eps)
//             dx = rstd (g - mean(g) - xh mean(g xh)),   g = dy w;   dw as above,   db = sum over rows of dy
//
// Fused with the residual stream: sum = x + residual takes the place of x, and backward the gradient that
// reached the sum from elsewhere is added to dx.
//
// Backward, each block sums dw and db over some rows, in registers where a row is held; a second kernel adds the
// blocks' sums. The partition of the rows depends on the shape only, so the bits do too.
#include <algorithm>
#include <cmath>

#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/row_reduce.cuh"
#include "braid/tensor/kernels/norm.h"

namespace braid::cuda {

namespace {

// Blocks that add up dw, for blocks of so many threads: as many as run at once on the 132 processors of an H100 or
// H200, with the 64 registers that a thread has there.
int64_t parts_of(unsigned threads) { return 132 * std::max<int64_t>(1, 1024 / threads); }

template <class A>
__device__ A square(A x) {
  return x * x;
}
// A row of an array that may be null.
template <class T>
__device__ const T* from(const T* x, int64_t at) {
  return x ? x + at : x;
}

template <class T, bool kHeld, bool kResidual>
__global__ void __launch_bounds__(kMaxTeam)
    rms_norm_kernel(RowPartition rows, const T* x, const T* residual, const T* weight, Accumulate<T> eps, T* sum, T* y,
                    Accumulate<T>* rstd) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n;
  Row<T, kHeld, 3> row(rows, rows.length(r), {{x + at}, {kResidual ? residual + at : nullptr}, {weight, T(1)}});
  auto normed = [](A v, A add) { return kResidual ? A(T(v + add)) : v; };
  if (kResidual) row.write(sum + at, [](int64_t, A v, A add, A) { return v + add; });
  A squares = rows.sum(row.sum([&](int64_t, A v, A add, A) { return square(normed(v, add)); }));
  A s = A(1) / std::sqrt(squares / A(rows.n) + eps);
  row.write(y + at, [&](int64_t, A v, A add, A w) { return normed(v, add) * s * w; });
  if (rows.leads(r)) rstd[r] = s;
}

template <class T, bool kHeld, bool kResidual>
__global__ void __launch_bounds__(kMaxTeam)
    layer_norm_kernel(RowPartition rows, const T* x, const T* residual, const T* weight, const T* bias,
                      Accumulate<T> eps, T* sum, T* y, Accumulate<T>* mean, Accumulate<T>* rstd) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n, n = rows.length(r);
  Row<T, kHeld, 4> row(rows, n, {{x + at}, {kResidual ? residual + at : nullptr}, {weight, T(1)}, {bias}});
  auto normed = [](A v, A add) { return kResidual ? A(T(v + add)) : v; };
  if (kResidual) row.write(sum + at, [](int64_t, A v, A add, A, A) { return v + add; });
  A m = rows.sum(row.sum([&](int64_t, A v, A add, A, A) { return normed(v, add); })) / A(rows.n);
  auto centred = [&](A v, A add) { return normed(v, add) - m; };
  A squares = rows.sum(row.sum([&](int64_t i, A v, A add, A, A) { return i < n ? square(centred(v, add)) : A(0); }));
  A s = A(1) / std::sqrt(squares / A(rows.n) + eps);
  row.write(y + at, [&](int64_t, A v, A add, A w, A b) { return centred(v, add) * s * w + b; });
  if (rows.leads(r)) {
    mean[r] = m;
    rstd[r] = s;
  }
}

// The sums of a block over its columns: kSums values for each. Held: in registers, and at the end team after team in
// shared memory.
template <class T, bool kHeld, int kSums>
class ColumnSums {
 public:
  using A = Accumulate<T>;
  static constexpr int W = kVectorWidth<T>;
  using Terms = A[kSums][W];

  __device__ ColumnSums(const RowPartition& rows, A* part)
      : rows_(rows), part_(part) {}  // part (kSums, n): the block's

  // Adds W values of each sum from column i on. All threads of a block call it for the same number of rows.
  __device__ void add(int64_t i, const Terms& terms, bool first) {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
#pragma unroll
      for (int j = 0; j < W; ++j) {
        if constexpr (kHeld) {
          sums_[k][j] += terms[k][j];
        } else if (i + j < rows_.n) {
          A& sum = part_[k * rows_.n + i + j];
          sum = (first ? A(0) : sum) + terms[k][j];
        }
      }
    }
  }

  __device__ void finish() {
    if constexpr (kHeld) {
      int64_t column = int64_t{W} * rows_.lane();
      if (rows_.team > 32) {
        put(column);
        return;
      }
      struct Sums {
        A value[kSums][32 * W];
      };
      Sums& all = shared<Sums>();
      for (int64_t turn = 0; turn < rows_.teams(); ++turn) {
        if (rows_.team_of_block() == turn) {
          for (int k = 0; k < kSums; ++k) {
            for (int j = 0; j < W; ++j) {
              A& sum = all.value[k][column + j];
              sum = turn == 0 ? sums_[k][j] : sum + sums_[k][j];
              sums_[k][j] = sum;
            }
          }
        }
        __syncthreads();
      }
      if (rows_.team_of_block() == rows_.teams() - 1) put(column);
    }
  }

 private:
  __device__ void put(int64_t i) {
    for (int k = 0; k < kSums; ++k) {
      for (int j = 0; j < W; ++j) {
        if (i + j < rows_.n) part_[k * rows_.n + i + j] = sums_[k][j];
      }
    }
  }

  RowPartition rows_;
  A* part_;
  Terms sums_ = {};
};

// parts: (blocks, sums, n), dw and of LayerNorm db, or null when neither is required. RMSNorm is the case of a mean of
// 0 (null).
template <class T, bool kHeld, bool kLayer>
__global__ void __launch_bounds__(kMaxTeam)
    norm_backward_kernel(RowPartition rows, const T* x, const T* weight, const Accumulate<T>* mean,
                         const Accumulate<T>* rstd, const T* dy, const T* dsum, T* dx, Accumulate<T>* parts) {
  using A = Accumulate<T>;
  using Packs = typename Row<T, kHeld, 3>::Packs;
  constexpr int W = kVectorWidth<T>;
  constexpr int kSums = kLayer ? 2 : 1;
  using Columns = ColumnSums<T, kHeld, kSums>;
  Columns sums(rows, parts + int64_t{blockIdx.x} * kSums * rows.n);
  int64_t stride = gridDim.x * rows.teams(), begin = blockIdx.x * rows.teams();
  for (int64_t base = begin; base < rows.count; base += stride) {
    int64_t r = base + rows.team_of_block(), at = r * rows.n, n = rows.length(r);
    A s = n > 0 ? rstd[r] : A(0), m = kLayer && n > 0 ? mean[r] : A(0);
    Row<T, kHeld, 3> row(rows, n, {{x + at}, {dy + at}, {weight, T(1)}});
    A dot = rows.sum(row.sum([&](int64_t, A v, A g, A w) { return g * w * (v - m); }));
    A total = kLayer ? rows.sum(row.sum([](int64_t, A, A g, A w) { return g * w; })) : A(0);
    A factor = dot * s * s * s / A(rows.n), shift = total * s / A(rows.n);
    row.each([&](int64_t i, const Packs& packs) {
      const Pack<T> more = load_pack<W>(from(dsum, at), i, dsum ? n : 0);  // not before: registers are scarce
      Pack<T> out;
#pragma unroll
      for (int j = 0; j < W; ++j) {
        const A v = A(packs[0][j]), g = A(packs[1][j]) * A(packs[2][j]);
        out[j] = T(s * g - shift - factor * (v - m) + A(more[j]));
      }
      store_pack(dx + at, i, n, out);
    });
    if (parts) {
      row.each([&](int64_t i, const Packs& packs) {
        typename Columns::Terms terms;
#pragma unroll
        for (int j = 0; j < W; ++j) {
          const A g = A(packs[1][j]);
          terms[0][j] = g * (A(packs[0][j]) - m) * s;
          if constexpr (kLayer) terms[1][j] = g;
        }
        sums.add(i, terms, base == begin);
      });
    }
  }
  if (parts) sums.finish();
}

// y[i] = sum over the parts of parts[.][i], width apart: 32 columns per block, each added by the lanes of one warp.
template <class T>
__global__ void __launch_bounds__(1024)
    sum_parts_kernel(const Accumulate<T>* parts, int count, int64_t width, int64_t n, T* y) {
  using A = Accumulate<T>;
  struct Tile {
    A value[32][33];  // one column of padding: a warp then reads a column without conflicts
  };
  Tile& tile = shared<Tile>();
  int a = static_cast<int>(threadIdx.x) / 32, b = static_cast<int>(threadIdx.x) % 32;
  int64_t column = int64_t{blockIdx.x} * 32 + b;
  A sum = A(0);
  for (int p = a; column < n && p < count; p += 32) sum += parts[p * width + column];
  tile.value[a][b] = sum;
  __syncthreads();
  sum = warp_sum(tile.value[b][a]);
  column = int64_t{blockIdx.x} * 32 + a;
  if (b == 0 && column < n) y[column] = T(sum);
}

template <class T>
void sum_parts(const Tensor& parts, int64_t from, Out y) {  // parts (P, sums n)
  int64_t n = y.numel(), width = parts.dim(1);
  if (n == 0) return;
  launch(sum_parts_kernel<T>, {.grid = static_cast<unsigned>((n + 31) / 32), .block = 1024},
         parts.data<Accumulate<T>>() + from, static_cast<int>(parts.dim(0)), width, n, y.mutable_data<T>());
}

template <class T>
const T* optional(In x) {
  return x ? x.data<T>() : nullptr;
}

template <bool kLayer>
void norm_backward(In x, In weight, In mean, In rstd, In dy, In dsum, Out dx, Tensor dweight, Tensor dbias) {
  visit_float(x.dtype(), kLayer ? "layer_norm_backward" : "rms_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    int64_t n = x.dim(-1), width = kLayer ? 2 * n : n;
    Tensor parts;  // (P, width)
    if (x.numel() > 0) {
      RowLaunch plan = plan_rows<T>(row_count(x), n, false);
      if (dweight || dbias) {
        plan.launch.grid.x = std::min(plan.launch.grid.x, static_cast<unsigned>(parts_of(plan.launch.block.x)));
        parts = empty({plan.launch.grid.x, width}, rstd.dtype(), x.device());
      }
      launch(plan.held ? norm_backward_kernel<T, true, kLayer> : norm_backward_kernel<T, false, kLayer>, plan.launch,
             plan.rows, x.data<T>(), optional<T>(weight), optional<A>(mean), rstd.data<A>(), dy.data<T>(),
             optional<T>(dsum), dx.mutable_data<T>(), parts ? parts.mutable_data<A>() : nullptr);
    } else {
      parts = empty({0, width}, rstd.dtype(), x.device());  // sums over no rows are zeros
    }
    if (dweight) sum_parts<T>(parts, 0, dweight);
    if (dbias) sum_parts<T>(parts, n, dbias);
  });
}

void rms_norm(In x, In residual, In weight, double eps, Out sum, Out y, Out rstd) {
  visit_float(x.dtype(), "rms_norm", [&]<class T>() {
    using A = Accumulate<T>;
    if (x.numel() == 0) return;
    RowLaunch plan = plan_rows<T>(row_count(x), x.dim(-1), false);
    launch(residual ? (plan.held ? rms_norm_kernel<T, true, true> : rms_norm_kernel<T, false, true>)
                    : (plan.held ? rms_norm_kernel<T, true, false> : rms_norm_kernel<T, false, false>),
           plan.launch, plan.rows, x.data<T>(), optional<T>(residual), optional<T>(weight), A(eps),
           sum ? sum.mutable_data<T>() : nullptr, y.mutable_data<T>(), rstd.mutable_data<A>());
  });
}

void rms_norm_backward(In x, In weight, In rstd, In dy, In dsum, Out dx, Out dweight) {
  norm_backward<false>(x, weight, {}, rstd, dy, dsum, dx, dweight, {});
}

void layer_norm(In x, In residual, In weight, In bias, double eps, Out sum, Out y, Out mean, Out rstd) {
  visit_float(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulate<T>;
    if (x.numel() == 0) return;
    RowLaunch plan = plan_rows<T>(row_count(x), x.dim(-1), false);
    launch(residual ? (plan.held ? layer_norm_kernel<T, true, true> : layer_norm_kernel<T, false, true>)
                    : (plan.held ? layer_norm_kernel<T, true, false> : layer_norm_kernel<T, false, false>),
           plan.launch, plan.rows, x.data<T>(), optional<T>(residual), optional<T>(weight), optional<T>(bias), A(eps),
           sum ? sum.mutable_data<T>() : nullptr, y.mutable_data<T>(), mean.mutable_data<A>(), rstd.mutable_data<A>());
  });
}

void layer_norm_backward(In x, In weight, In mean, In rstd, In dy, In dsum, Out dx, Out dweight, Out dbias) {
  norm_backward<true>(x, weight, mean, rstd, dy, dsum, dx, dweight, dbias);
}

}  // namespace

constinit const NormKernels norm_kernels{
    .rms_forward = rms_norm,
    .rms_backward = rms_norm_backward,
    .layer_forward = layer_norm,
    .layer_backward = layer_norm_backward,
};

}  // namespace braid::cuda
