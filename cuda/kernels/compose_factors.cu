// The factors of Compose from the products of their generator, and the derivative: norm over heads, copy and tanh of
// all branches in one launch.
//
//   down  y = x rstd,  rstd = 1 / sqrt(mean(x^2) + eps)    dx = rstd (dy - y mean(dy y))
//   up    y = x                                            dx = dy
//   gate  y = tanh(x)                                      dx = dy (1 - y^2)
//
// A row is the M heads of one factor; blockIdx.y is the group and branch, whose rows are those of its positions, 2R + 1
// of each. Teams of a warp may have rows of different kinds, so all of them add up squares.
#include <cmath>

#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/row_reduce.cuh"
#include "braid/tensor/kernels/compose_factors.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::cuda {

namespace {

struct FactorShape {
  int64_t positions;
  int groups, branches, rank;
};

// Where a row lies. Rows of a team without one lie anywhere and have no elements.
struct FactorRow {
  int64_t x, y;   // in w or in gates; in the result
  int64_t of_dy;  // in the gradient of this kind
  int branch, kind;

  __device__ FactorRow(const RowPartition& rows, const FactorShape& shape) {
    const int rank = shape.rank, each = 2 * rank + 1, column = static_cast<int>(blockIdx.y);
    const int64_t row = rows.row(), p = row / each, at = p * shape.groups * shape.branches + column;
    const int s = static_cast<int>(row - p * each), group = column / shape.branches;
    branch = column % shape.branches;
    kind = s == 2 * rank ? 2 : s >= rank;
    x = (kind == 2 ? at : (column * shape.positions + p) * 2 * rank + s) * rows.n;
    y = (at * each + s) * rows.n;
    const int64_t token = p * shape.groups + group;
    of_dy = (kind == 2 ? token : token * rank + s - kind * rank) * rows.n;
  }
  __device__ bool normed() const { return kind == 0; }
  __device__ bool is_gate() const { return kind == 2; }
};

template <class A>
__device__ A tanh_of(A x) {
  return pointwise::Unary<UnaryOp::tanh, A>::forward(x, A(0), A(0));
}

template <class T, bool kHeld>
__global__ void __launch_bounds__(kMaxTeam)
    compose_factors_kernel(RowPartition rows, FactorShape shape, const T* w, const T* gates, Accumulate<T> eps, T* y) {
  using A = Accumulate<T>;
  const FactorRow at(rows, shape);
  Row<T, kHeld, 1> row(rows, rows.length(rows.row()), {{(at.is_gate() ? gates : w) + at.x}});
  const A squares = rows.sum(row.sum([](int64_t, A v) { return v * v; }));
  const A scale = at.normed() ? A(1) / std::sqrt(squares / A(rows.n) + eps) : A(1);
  row.write(y + at.y, [&](int64_t, A v) { return at.is_gate() ? tanh_of(v) : v * scale; });
}

template <class T>
struct FactorGradients {
  const T* of[kComposeBranches][3];  // down, up, gate; null: zeros
  // By comparisons: an index that is not a constant would copy the table to each thread's stack.
  __device__ const T* at(int branch, int kind) const {
    const T* found = nullptr;
#pragma unroll
    for (int b = 0; b < kComposeBranches; ++b) {
#pragma unroll
      for (int k = 0; k < 3; ++k) found = b == branch && k == kind ? of[b][k] : found;
    }
    return found;
  }
};

template <class T, bool kHeld>
__global__ void __launch_bounds__(kMaxTeam)
    compose_factors_backward_kernel(RowPartition rows, FactorShape shape, const T* w, const T* gates, Accumulate<T> eps,
                                    FactorGradients<T> gradients, T* dw, T* dgates) {
  using A = Accumulate<T>;
  const FactorRow at(rows, shape);
  const T* dy = gradients.at(at.branch, at.kind);
  Row<T, kHeld, 2> row(rows, rows.length(rows.row()), {{(at.is_gate() ? gates : w) + at.x}, {dy ? dy + at.of_dy : dy}});
  const A squares = rows.sum(row.sum([](int64_t, A v, A) { return v * v; }));
  const A dot = rows.sum(row.sum([](int64_t, A v, A g) { return g * v; }));
  const A s = at.normed() ? A(1) / std::sqrt(squares / A(rows.n) + eps) : A(1);
  const A factor = at.normed() ? dot * s * s * s / A(rows.n) : A(0);
  row.write((at.is_gate() ? dgates : dw) + at.x, [&](int64_t, A v, A g) {
    if (!at.is_gate()) return s * g - factor * v;
    const A t = tanh_of(v);
    return g * (A(1) - t * t);
  });
}

// gates (P, G, C, M)
FactorShape shape_of(In w, In gates) {
  return {gates.dim(0), static_cast<int>(gates.dim(1)), static_cast<int>(gates.dim(2)),
          w ? static_cast<int>(w.dim(3) / 2) : 0};
}

template <class T>
RowLaunch plan_factors(const FactorShape& shape, int64_t heads) {
  RowLaunch plan = plan_rows<T>(shape.positions * (2 * shape.rank + 1), heads, false);
  plan.launch.grid.y = static_cast<unsigned>(shape.groups * shape.branches);
  return plan;
}

template <class T>
const T* optional(In x) {
  return x ? x.data<T>() : nullptr;
}

void compose_factors(In w, In gates, double eps, Out y) {
  if (y.numel() == 0) return;
  visit_float(gates.dtype(), "compose_factors", [&]<class T>() {
    const FactorShape shape = shape_of(w, gates);
    const RowLaunch plan = plan_factors<T>(shape, gates.dim(3));
    launch(plan.held ? compose_factors_kernel<T, true> : compose_factors_kernel<T, false>, plan.launch, plan.rows,
           shape, optional<T>(w), gates.data<T>(), Accumulate<T>(eps), y.mutable_data<T>());
  });
}

void compose_factors_backward(In w, In gates, double eps, const std::vector<Tensor>& dys, Out dw, Out dgates) {
  if (gates.numel() == 0) return;
  visit_float(gates.dtype(), "compose_factors_backward", [&]<class T>() {
    const FactorShape shape = shape_of(w, gates);
    const RowLaunch plan = plan_factors<T>(shape, gates.dim(3));
    FactorGradients<T> gradients = {};
    for (size_t i = 0; i < dys.size(); ++i) gradients.of[i / 3][i % 3] = optional<T>(dys[i]);
    launch(plan.held ? compose_factors_backward_kernel<T, true> : compose_factors_backward_kernel<T, false>,
           plan.launch, plan.rows, shape, optional<T>(w), gates.data<T>(), Accumulate<T>(eps), gradients,
           dw ? dw.mutable_data<T>() : nullptr, dgates.mutable_data<T>());
  });
}

}  // namespace

constinit const ComposeFactorsKernels compose_factors_kernels{
    .forward = compose_factors,
    .backward = compose_factors_backward,
};

}  // namespace braid::cuda
