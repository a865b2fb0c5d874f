// Rows partitioned among teams of threads, for kernels that reduce along the last axis.
//
// A team is 1, 2, 4, ... 32 lanes of a warp, or a block. Where a row is short enough, each thread holds one pack of 16
// bytes of each input in registers, so that memory is read once ("held"); longer rows are read again in each pass, from
// the caches ("streamed"). The partition depends on the shape only.
#pragma once
#include <algorithm>
#include <limits>
#include <utility>

#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/tensor.h"

namespace braid::cuda {

inline constexpr int kMaxTeam = 1024, kStreamingTeam = 512;

// Passed to kernels by value.
struct RowPartition {
  int64_t count, n;  // rows, and elements of each
  int team;          // threads per row

  __device__ int lane() const { return static_cast<int>(team > 32 ? threadIdx.x : threadIdx.x & (team - 1u)); }
  __device__ int64_t team_of_block() const { return team > 32 ? 0 : threadIdx.x / static_cast<unsigned>(team); }
  __device__ int64_t teams() const { return team > 32 ? 1 : blockDim.x / static_cast<unsigned>(team); }
  // The row of this thread's team, when the first team of block 0 has row 0 and so on.
  __device__ int64_t row() const { return blockIdx.x * teams() + team_of_block(); }
  // n, or 0 for a team without a row, which still takes part in the operations of its warp.
  __device__ int64_t length(int64_t row) const { return row < count ? n : 0; }
  __device__ bool leads(int64_t row) const { return row < count && lane() == 0; }

  template <class A>
  __device__ A sum(A x) const {
    return team > 32 ? block_sum(x) : lanes_sum(x, team);
  }
  template <class A>
  __device__ A max(A x) const {
    return team > 32 ? block_max(x) : lanes_max(x, team);
  }
};

template <class T>
struct Input {
  const T* row;        // null: every element is `otherwise`
  T otherwise = T(0);  // also for elements outside the row
};

// One thread's part of a row of each of kInputs arrays.
template <class T, bool kHeld, int kInputs>
class Row {
 public:
  using A = Accumulate<T>;
  static constexpr int W = kVectorWidth<T>;
  using Packs = Pack<T>[kInputs];

  // shift: packs begin at elements -shift, W - shift, ... of the row, so that they can begin at a multiple of 16 bytes.
  __device__ Row(const RowPartition& rows, int64_t n, const Input<T> (&inputs)[kInputs], int shift = 0)
      : n_(n), first_(int64_t{W} * rows.lane() - shift), step_(int64_t{W} * rows.team) {
#pragma unroll
    for (int k = 0; k < kInputs; ++k) inputs_[k] = inputs[k];
    if constexpr (kHeld) read(first_, held_);
  }

  // body(i, packs) for each of this thread's packs; i is the place in the row of the packs' first element.
  template <class F>
  __device__ void each(F body) const {
    if constexpr (kHeld) {
      body(first_, held_);
    } else {
      for (int64_t i = first_; i < n_; i += step_) {
        Packs packs;
        read(i, packs);
        body(i, packs);
      }
    }
  }

  // Sum and maximum of f(i, x0, x1, ...) over this thread's elements. f is also called for elements outside the row.
  template <class F>
  __device__ A sum(F f) const {
    A total = A(0);
    each([&](int64_t i, const Packs& packs) {
#pragma unroll
      for (int j = 0; j < W; ++j) total += call(f, i + j, packs, j);
    });
    return total;
  }
  template <class F>
  __device__ A max(F f) const {
    A largest = -std::numeric_limits<A>::infinity();
    each([&](int64_t i, const Packs& packs) {
#pragma unroll
      for (int j = 0; j < W; ++j) largest = larger(largest, call(f, i + j, packs, j));
    });
    return largest;
  }

  // y[i] = f(i, x0, x1, ...); y may be one of the inputs.
  template <class F>
  __device__ void write(T* y, F f) const {
    each([&](int64_t i, const Packs& packs) {
      Pack<T> out;
#pragma unroll
      for (int j = 0; j < W; ++j) out[j] = T(call(f, i + j, packs, j));
      store_pack(y, i, n_, out);
    });
  }

 private:
  __device__ void read(int64_t i, Packs& packs) const {
#pragma unroll
    for (int k = 0; k < kInputs; ++k) {
      packs[k] = load_pack<W>(inputs_[k].row, i, inputs_[k].row ? n_ : 0, inputs_[k].otherwise);
    }
  }
  template <class F>
  __device__ static A call(F& f, int64_t i, const Packs& packs, int j) {
    return [&]<size_t... k>(std::index_sequence<k...>) { return f(i, A(packs[k][j])...); }
    (std::make_index_sequence<kInputs>());
  }

  Input<T> inputs_[kInputs];
  int64_t n_, first_, step_;
  Packs held_;
};

// How many elements a row lies behind a multiple of 16 bytes.
template <class T>
__device__ int shift_of(const T* row) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T));
}

// --- host: how to launch ---

inline int64_t row_count(const Tensor& x) { return x.dim(-1) == 0 ? 0 : x.numel() / x.dim(-1); }

struct RowLaunch {
  RowPartition rows;
  bool held;
  Launch launch;
};

// A thread for each of the `units` of a row, up to `largest` threads for a row.
inline RowLaunch plan_units(int64_t count, int64_t units, int largest) {
  int team = 1, block = 256;
  if (units <= 32) {
    while (team < units) team *= 2;
  } else {
    team = block = static_cast<int>(std::min<int64_t>((units + 31) / 32 * 32, largest));
  }
  int64_t teams = block / team;
  return {
      .rows = {.count = count, .n = units, .team = team},
      .held = units <= team,
      .launch = {.grid = static_cast<unsigned>((count + teams - 1) / teams), .block = static_cast<unsigned>(block)}};
}

// Units of a pack. shifted: rows may begin at any address, and the kernel shifts its packs.
template <class T>
RowLaunch plan_rows(int64_t count, int64_t n, bool shifted) {
  int64_t packs = (n + (shifted ? 2 : 1) * (kVectorWidth<T> - 1)) / kVectorWidth<T>;
  RowLaunch plan = plan_units(count, packs, packs <= kMaxTeam ? kMaxTeam : kStreamingTeam);
  plan.rows.n = n;
  return plan;
}

}  // namespace braid::cuda
