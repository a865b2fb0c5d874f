// Reading and writing by ids. Ids are in range (the op checked them). index_add is in index_add.cu.
#include <algorithm>

#include "braid/cuda/device/index_view.cuh"
#include "braid/cuda/device/row_reduce.cuh"
#include "braid/cuda/runtime/kernel.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

// Calls f with an unsigned type of the elements' size: what only moves elements need not know what they are.
template <class F>
void visit_size(DType t, F f) {
  switch (size_of(t)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

// y[i] = table[ids[i]], rows of n units
template <class Unit>
__global__ void __launch_bounds__(kThreads) index_select_kernel(Rows rows, const Unit* table, Ids ids, Unit* y) {
  int64_t r = rows.row(), n = rows.length(r);
  if (n == 0) return;
  const Unit* from = table + ids[r] * n;
  Unit* to = y + r * n;
  for (int64_t i = rows.rank(); i < n; i += rows.team) to[i] = from[i];
}

template <class Unit>
void select_rows(In table, In ids, Out y, int64_t bytes) {
  RowLaunch plan = plan_units(ids.numel(), bytes / static_cast<int64_t>(sizeof(Unit)), kThreads);
  launch(index_select_kernel<Unit>, plan.launch, plan.rows, static_cast<const Unit*>(table.raw()), Ids(ids),
         static_cast<Unit*>(y.mutable_raw()));
}

// y[r] = x[r, ids[r]]
template <class Unit>
__global__ void __launch_bounds__(kThreads) gather_kernel(Rows rows, const Unit* x, Ids ids, Unit* y) {
  int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r < rows.count) y[r] = x[r * rows.n + ids[r]];
}

// dx[r, j] = dy[r] where j = ids[r], else 0
template <class Unit>
__global__ void __launch_bounds__(kLargestTeam) scatter_kernel(Rows rows, const Unit* dy, Ids ids, Unit* dx) {
  constexpr int W = kWidth<Unit>;
  int64_t r = rows.row();
  if (r >= rows.count) return;
  Unit* row = dx + r * rows.n;
  int64_t id = ids[r], first = int64_t{W} * rows.rank() - shift_of(row);
  Unit value = dy[r];
  for (int64_t i = first; i < rows.n; i += int64_t{W} * rows.team) {
    Pack<Unit> pack;
#pragma unroll
    for (int j = 0; j < W; ++j) pack[j] = i + j == id ? value : Unit(0);
    store_pack(row, i, rows.n, pack);
  }
}

// The smallest and the largest id: one block, because the list is short and each launch costs more than the walk.
__global__ void __launch_bounds__(1024) index_range_kernel(Ids ids, int64_t count, int64_t* low_high) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    low = std::min(low, ids[i]);
    high = std::max(high, ids[i]);
  }
  low = -block_max(-low);  // -INT64_MAX exists
  high = block_max(high);
  if (threadIdx.x == 0) {
    low_high[0] = count > 0 ? low : 0;
    low_high[1] = count > 0 ? high : -1;
  }
}

}  // namespace

void index_select(In table, In ids, Out y) {
  if (y.numel() == 0) return;
  int64_t bytes = y.numel() / ids.numel() * size_of(y.dtype());
  uintptr_t all =
      reinterpret_cast<uintptr_t>(table.raw()) | reinterpret_cast<uintptr_t>(y.raw()) | static_cast<uintptr_t>(bytes);
  if (all % 16 == 0) {
    select_rows<uint4>(table, ids, y, bytes);
  } else {
    visit_size(y.dtype(), [&]<class Unit>() { select_rows<Unit>(table, ids, y, bytes); });
  }
}

void gather(In x, In ids, Out y) {
  if (ids.numel() == 0) return;
  visit_size(x.dtype(), [&]<class Unit>() {
    launch(gather_kernel<Unit>, {.grid = blocks_for(ids.numel()), .block = kThreads}, Rows{ids.numel(), x.dim(-1), 1},
           static_cast<const Unit*>(x.raw()), Ids(ids), static_cast<Unit*>(y.mutable_raw()));
  });
}

void scatter(In dy, In ids, Out dx) {
  if (dx.numel() == 0) return;
  visit_size(dy.dtype(), [&]<class Unit>() {
    RowLaunch plan = plan_rows<Unit>(ids.numel(), dx.dim(-1), true);
    launch(scatter_kernel<Unit>, plan.launch, plan.rows, static_cast<const Unit*>(dy.raw()), Ids(ids),
           static_cast<Unit*>(dx.mutable_raw()));
  });
}

void min_max(In ids, Out low_high) {
  launch(index_range_kernel, {.grid = 1, .block = 1024}, Ids(ids), ids.numel(), low_high.mutable_data<int64_t>());
}

}  // namespace braid::cuda
