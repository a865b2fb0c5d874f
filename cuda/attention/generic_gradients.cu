// Gradients of the factors of a stage O = Compose(A), given d = dO (formula in autograd/dcmha.h):
//
//   key side, sums over query rows i, where h_r = sum_m A[m] k_down[r,m] and f_r = sum_n d[n] k_up[r,n]:
//     dk_down[r,m] = sum_i A[m] f_r,   dk_up[r,n] = sum_i h_r d[n],   dk_gate[n] = sum_i A[n] d[n]
//   query side, sums over keys j, all of which follow from outer[m,n] = sum_j A[m] d[n]:
//     dq_down[r,m] = sum_n outer[m,n] q_up[r,n],   dq_up[r,n] = sum_m outer[m,n] q_down[r,m],   dq_gate[n] = outer[n,n]
//   base: the sum of outer over samples and rows
#include <algorithm>

#include "braid/cuda/attention/generic.h"
#include "braid/cuda/device/kernel.h"

namespace braid::cuda::attention::generic {

namespace {

constexpr int kKeys = 32, kWarps = 8;  // of a block: a lane for each key, warps share rows first and heads then
constexpr int kMaxRanks = 4;           // at once

// Some ranks of the key side, from `first` on; null: absent, or not required. Factors and sums are (B, G, rank, M, S).
template <class T>
struct KeySide {
  const T *down, *up;
  Accumulate<T>*d_down, *d_up, *d_gate;
  int rank, first, count;
  BRAID_HD int64_t shared_values(int64_t M) const { return kKeys * (count * (4 * M + 2 * kWarps) + (d_gate ? M : 0)); }
};

// A block owns 32 keys of one sample and group and walks along the rows, eight at a time, so that it alone adds
// to the sums of its keys: no two blocks add to the same element.
template <class T>
__global__ void key_gradients_of_keys(ScoreBlock block, KeySide<T> side, const T* a, const T* d) {
  using A = Accumulate<T>;
  const int lane = static_cast<int>(threadIdx.x) % kKeys, warp = static_cast<int>(threadIdx.x) / kKeys;
  const int M = static_cast<int>(block.M), count = side.count;
  const int64_t tiles = (block.keys + kKeys - 1) / kKeys, start = blockIdx.x % tiles * kKeys, j = start + lane;
  const int64_t sample = blockIdx.x / tiles / block.G, group = blockIdx.x / tiles % block.G;
  const int64_t pair = (block.b0 + sample) * block.G + group;
  const bool exists = j < block.keys;
  auto factor = [&](int item) {  // of the arrays (B, G, rank, M, S): rank and head are item = r M + m
    return ((pair * side.rank + side.first) * M + item) * block.S + block.s0 + j;
  };
  auto score = [&](int m, int64_t row) {
    return (((sample * block.G + group) * M + m) * block.rows + row) * block.pitch + j;
  };

  // Shared memory: a column for each key, [item or rank and row][32].
  A* down = dynamic_shared<A>() + lane;
  A* up = down + count * M * kKeys;
  A* sum_down = up + count * M * kKeys;
  A* sum_up = sum_down + count * M * kKeys;
  A* h = sum_up + count * M * kKeys;
  A* f = h + count * kWarps * kKeys;
  A* sum_gate = f + count * kWarps * kKeys;
  for (int item = warp; item < count * M; item += kWarps) {
    down[item * kKeys] = exists ? static_cast<A>(side.down[factor(item)]) : A(0);
    up[item * kKeys] = exists ? static_cast<A>(side.up[factor(item)]) : A(0);
    sum_down[item * kKeys] = sum_up[item * kKeys] = 0;
  }
  for (int m = warp; side.d_gate && m < M; m += kWarps) sum_gate[m * kKeys] = 0;
  __syncthreads();

  for (int64_t row0 = 0; row0 < block.rows; row0 += kWarps) {
    const int64_t last = row0 + kWarps < block.rows ? row0 + kWarps - 1 : block.rows - 1;
    if (block.mask.end(block.t0 + last, block.S) <= block.s0 + start ||
        block.mask.first(block.t0 + row0) >= block.s0 + start + kKeys) {
      continue;  // all of the keys are masked for all of the rows
    }
    A h_row[kMaxRanks] = {}, f_row[kMaxRanks] = {};
    if (exists && row0 + warp < block.rows && count > 0) {
      for (int m = 0; m < M; ++m) {
        const A x = static_cast<A>(a[score(m, row0 + warp)]), y = static_cast<A>(d[score(m, row0 + warp)]);
#pragma unroll
        for (int r = 0; r < kMaxRanks; ++r) {
          if (r >= count) continue;
          h_row[r] += x * down[(r * M + m) * kKeys];
          f_row[r] += y * up[(r * M + m) * kKeys];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= count) continue;
      h[(r * kWarps + warp) * kKeys] = h_row[r];
      f[(r * kWarps + warp) * kKeys] = f_row[r];
    }
    __syncthreads();
    for (int m = warp; m < M; m += kWarps) {
      A x[kWarps], y[kWarps], gate = 0;
#pragma unroll
      for (int i = 0; i < kWarps; ++i) {
        const bool inside = exists && row0 + i < block.rows;
        x[i] = inside ? static_cast<A>(a[score(m, row0 + i)]) : A(0);
        y[i] = inside ? static_cast<A>(d[score(m, row0 + i)]) : A(0);
        gate += x[i] * y[i];
      }
      for (int r = 0; r < count; ++r) {
        A of_down = 0, of_up = 0;
#pragma unroll
        for (int i = 0; i < kWarps; ++i) {
          of_down += x[i] * f[(r * kWarps + i) * kKeys];
          of_up += y[i] * h[(r * kWarps + i) * kKeys];
        }
        sum_down[(r * M + m) * kKeys] += of_down;
        sum_up[(r * M + m) * kKeys] += of_up;
      }
      if (side.d_gate) sum_gate[m * kKeys] += gate;
    }
    __syncthreads();
  }

  // Each thread kept the sums of the heads that it adds here. Other blocks have other keys.
  if (!exists) return;
  for (int m = warp; m < M; m += kWarps) {
    for (int r = 0; r < count; ++r) {
      side.d_down[factor(r * M + m)] += sum_down[(r * M + m) * kKeys];
      side.d_up[factor(r * M + m)] += sum_up[(r * M + m) * kKeys];
    }
    if (side.d_gate) side.d_gate[(pair * M + m) * block.S + block.s0 + j] += sum_gate[m * kKeys];
  }
}

// Factors and gradients of the query side, (B, T, G, R, M) with the last axis contiguous; null: absent, not required.
template <class T>
struct QuerySide {
  struct Factor {
    const T* data = nullptr;
    int64_t b = 0, t = 0, g = 0, r = 0;
  };
  Factor down, up;
  T *d_down, *d_up, *d_gate;  // contiguous
  int rank;
};

// A block for each sample, row and group.
template <class T>
__global__ void query_gradients_of_row(ScoreBlock block, QuerySide<T> side, const Accumulate<T>* grams) {
  using A = Accumulate<T>;
  const int M = static_cast<int>(block.M);
  const int64_t row = blockIdx.x % block.rows, group = blockIdx.x / block.rows % block.G;
  const int64_t b = block.b0 + blockIdx.x / block.rows / block.G, t = block.t0 + row;
  const int64_t place = (b * block.T + t) * block.G + group;
  const A* outer = grams + static_cast<int64_t>(blockIdx.x) * M * M;
  auto at = [&](const typename QuerySide<T>::Factor& x, int r) {
    return x.data + b * x.b + t * x.t + group * x.g + r * x.r;
  };
  for (int item = static_cast<int>(threadIdx.x); item < side.rank * M; item += static_cast<int>(blockDim.x)) {
    const int r = item / M, m = item % M;
    const T *up = at(side.up, r), *down = at(side.down, r);
    A of_down = 0, of_up = 0;
    for (int n = 0; n < M; ++n) {
      of_down += outer[m * M + n] * static_cast<A>(up[n]);
      of_up += outer[n * M + m] * static_cast<A>(down[n]);
    }
    if (side.d_down) side.d_down[place * side.rank * M + item] = static_cast<T>(of_down);
    if (side.d_up) side.d_up[place * side.rank * M + item] = static_cast<T>(of_up);
  }
  for (int n = static_cast<int>(threadIdx.x); side.d_gate && n < M; n += static_cast<int>(blockDim.x)) {
    side.d_gate[place * M + n] = static_cast<T>(outer[n * M + n]);
  }
}

// A thread for each number of the sum (G, M, M).
template <class A>
__global__ void add_grams(ScoreBlock block, const A* grams, A* sum) {
  const int64_t square = block.M * block.M, i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= block.G * square) return;
  const int64_t group = i / square, in_group = i % square;
  A total = 0;
  for (int64_t sample = 0; sample < block.samples; ++sample) {
    const A* outer = grams + (sample * block.G + group) * block.rows * square + in_group;
#pragma unroll 8
    for (int64_t row = 0; row < block.rows; ++row) total += outer[row * square];
  }
  sum[i] += total;
}

template <class T>
T* writable(Tensor& x) {
  return x ? x.mutable_data<T>() : nullptr;
}

template <class T>
typename QuerySide<T>::Factor factor(const Tensor& x) {
  if (!x) return {};
  return {x.data<T>(), x.strides()[0], x.strides()[1], x.strides()[2], x.strides()[3]};
}

}  // namespace

void key_gradients(const ScoreBlock& block, const HeadMixing& stage, In a, In d, HeadMixing& sums) {
  visit_float(a.dtype(), "dcmha", [&]<class T>() {
    using A = Accumulate<T>;
    KeySide<T> side{};
    if (sums.k_down) {
      side.rank = static_cast<int>(stage.k_down.dim(2));
      side.down = stage.k_down.data<T>();
      side.up = stage.k_up.data<T>();
      side.d_down = sums.k_down.mutable_data<A>();
      side.d_up = sums.k_up.mutable_data<A>();
    }
    side.d_gate = writable<A>(sums.k_gate);
    do {
      side.count = std::min(kMaxRanks, side.rank - side.first);
      while (side.count > 1 &&
             side.shared_values(block.M) * static_cast<int64_t>(sizeof(A)) > properties().shared_bytes)
        --side.count;
      launch(key_gradients_of_keys<T>,
             {.grid = static_cast<unsigned>(block.samples * block.G * ((block.keys + kKeys - 1) / kKeys)),
              .block = kKeys * kWarps,
              .shared_bytes = static_cast<size_t>(side.shared_values(block.M)) * sizeof(A)},
             block, side, a.data<T>(), d.data<T>());
      side.first += side.count;
      side.d_gate = nullptr;
    } while (side.first < side.rank);
  });
}

void query_gradients(const ScoreBlock& block, const HeadMixing& stage, In outer, HeadMixing& gradients) {
  const Tensor& like = gradients.q_down ? gradients.q_down : gradients.q_up ? gradients.q_up : gradients.q_gate;
  visit_float(like.dtype(), "dcmha", [&]<class T>() {
    QuerySide<T> side{};
    if (gradients.q_down || gradients.q_up) {
      side.rank = static_cast<int>(stage.q_down.dim(3));
      side.down = factor<T>(stage.q_down);
      side.up = factor<T>(stage.q_up);
    }
    side.d_down = writable<T>(gradients.q_down);
    side.d_up = writable<T>(gradients.q_up);
    side.d_gate = writable<T>(gradients.q_gate);
    launch(query_gradients_of_row<T>,
           {.grid = static_cast<unsigned>(block.samples * block.G * block.rows), .block = 64}, block, side,
           outer.data<Accumulate<T>>());
  });
}

void base_gradient(const ScoreBlock& block, In outer, Out sum) {
  auto add = [&]<class A>(const A* grams) {
    const int64_t count = block.G * block.M * block.M;
    launch(add_grams<A>, {.grid = static_cast<unsigned>((count + 63) / 64), .block = 64}, block, grams,
           sum.mutable_data<A>());
  };
  if (outer.dtype() == DType::f64) {
    add(outer.data<double>());
  } else {
    add(outer.data<float>());
  }
}

}  // namespace braid::cuda::attention::generic
