// Compose by one thread: one key, four query rows, all heads of a group (the formula stands in autograd/dcmha.h).
//
// The threads of a block are neighbours along the keys, so scores, key factors and results are read and written in full
// lines. The factors of the query rows are the same for all of them and lie in shared memory; so do a thread's values
// of all heads, in a column, because heads are too many for registers. Four rows at a time, because a key's factors are
// then read once for four scores, and shared memory moves 16 bytes at a time.
#pragma once
#include "braid/cuda/attention/generic.h"
#include "braid/cuda/device/kernel.h"

namespace braid::cuda::attention::generic {

inline constexpr int kRows = 4;  // query rows of a block

// One value for each row.
template <class A>
struct alignas(16) Quad {
  A row[kRows];
};

template <class A>
__device__ __forceinline__ void add_product(Quad<A>& sum, const Quad<A>& x, const Quad<A>& w) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) sum.row[i] += x.row[i] * w.row[i];
}
template <class A>
__device__ __forceinline__ void add_product(Quad<A>& sum, const Quad<A>& x, A w) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) sum.row[i] += x.row[i] * w;
}

// A stage of compose as kernels take it; null: the term is absent.
template <class T>
struct Terms {
  struct QueryFactor {  // (B, T, G, R, M), the last axis contiguous
    const T* data = nullptr;
    int64_t b, t, g, r;
  };
  QueryFactor q_down, q_up, q_gate;
  const T *k_down = nullptr, *k_up = nullptr, *k_gate = nullptr;  // (B, G, R, M, S)
  const T* base = nullptr;                                        // element (g, m, n) at the three strides
  int64_t base_group = 0, base_read = 0, base_write = 0;
  int q_rank = 0, k_rank = 0;

  // Values of M heads that belong to a query row.
  BRAID_HD int query_items() const { return 2 * q_rank + (q_gate.data ? 1 : 0); }
};

// Shared memory of a block, in Quads: [items of both stages][M], [row values][M], columns [M][threads], hidden sums
// [ranks][threads].
struct SharedMemoryPlan {
  int threads, heads;
  int items, row_values, columns, ranks;
  template <class A>
  BRAID_HD int64_t bytes() const {
    return static_cast<int64_t>(sizeof(Quad<A>)) * (static_cast<int64_t>(heads) * (items + row_values) +
                                                    static_cast<int64_t>(threads) * (heads * columns + ranks));
  }
};

// The four rows of this thread block, in one sample and group, and their unmasked keys. Positions count from the score
// block's first key.
template <class T>
struct QueryTile {
  using A = Accumulate<T>;

  const ScoreBlock& block;
  int64_t sample, group, row0;       // in the score block
  int64_t first[kRows], end[kRows];  // unmasked keys of each row: none where first >= end
  int64_t low, high;                 // the unmasked keys of all rows lie in [low, high)

  __device__ explicit QueryTile(const ScoreBlock& c) : block(c) {
    const int64_t quads = (c.rows + kRows - 1) / kRows, index = blockIdx.x;
    row0 = index % quads * kRows;
    sample = index / quads / c.G;
    group = index / quads % c.G;
    low = c.keys;
    high = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t t = c.t0 + row0 + i, from = c.mask.first(t) - c.s0, to = c.mask.end(t, c.S) - c.s0;
      const bool exists = row0 + i < c.rows;
      first[i] = exists && from > 0 ? from : 0;
      end[i] = !exists ? 0 : to < c.keys ? to : c.keys;
      if (first[i] < end[i]) {
        low = first[i] < low ? first[i] : low;
        high = end[i] > high ? end[i] : high;
      }
    }
  }

  __device__ bool unmasked(int i, int64_t j) const { return j >= first[i] && j < end[i]; }
  __device__ int64_t pair() const { return (block.b0 + sample) * block.G + group; }  // of all samples and groups

  // Where head m, the first of the four rows and key j lie in the scores.
  __device__ int64_t at(int m, int64_t j) const {
    return (((sample * block.G + group) * block.M + m) * block.rows + row0) * block.pitch + j;
  }
  __device__ Quad<A> load(const T* scores, int m, int64_t j) const {
    const T* x = scores + at(m, j);
    Quad<A> out{};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row0 + i < block.rows && j < block.keys) out.row[i] = static_cast<A>(x[i * block.pitch]);
    }
    return out;
  }
  __device__ void store(T* scores, int m, int64_t j, const Quad<A>& value) const {
    T* x = scores + at(m, j);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row0 + i < block.rows && j < block.keys) x[i * block.pitch] = static_cast<T>(value.row[i]);
    }
  }

  // Copies the factors of the four rows into shared memory, all threads together; a barrier must follow.
  __device__ void stage_queries(const Terms<T>& c, Quad<A>* to) const {
    const int M = static_cast<int>(block.M), count = c.query_items() * M;
    for (int at = static_cast<int>(threadIdx.x); at < count; at += static_cast<int>(blockDim.x)) {
      const int item = at / M, m = at % M;
      const auto& from = item < c.q_rank ? c.q_down : item < 2 * c.q_rank ? c.q_up : c.q_gate;
      const int r = item < c.q_rank ? item : item < 2 * c.q_rank ? item - c.q_rank : 0;
      Quad<A> value{};
      for (int i = 0; i < kRows; ++i) {
        if (row0 + i >= block.rows) continue;
        value.row[i] = static_cast<A>(
            from.data[(block.b0 + sample) * from.b + (block.t0 + row0 + i) * from.t + group * from.g + r * from.r + m]);
      }
      to[at] = value;
    }
  }
};

// out(n, O[n]) for all heads n of key j, where a(m) is A[m]. `queries` as staged, `hidden` the thread's first sum. out
// may overwrite what a reads unless there is a base term, which reads every A[m] for every n.
template <class T, class Read, class Write>
__device__ __forceinline__ void compose_key(const QueryTile<T>& tile, const Terms<T>& c, int64_t j,
                                            const Quad<Accumulate<T>>* queries, Quad<Accumulate<T>>* hidden,
                                            const Read& a, const Write& out) {
  using A = Accumulate<T>;
  const int M = static_cast<int>(tile.block.M);
  const int64_t S = tile.block.S, key = tile.block.s0 + (j < tile.block.keys ? j : tile.block.keys - 1);
  const int64_t factor = tile.pair() * c.k_rank * M * S + key;  // of rank 0 and head 0
  const Quad<A>* q_up = queries + c.q_rank * M;
  const Quad<A>* q_gate = q_up + c.q_rank * M;
  Quad<A>* k_hidden = hidden + c.q_rank * static_cast<int>(blockDim.x);

  for (int r = 0; r < c.q_rank; ++r) {
    Quad<A> sum{};
#pragma unroll 4
    for (int m = 0; m < M; ++m) add_product(sum, a(m), queries[r * M + m]);
    hidden[r * static_cast<int>(blockDim.x)] = sum;
  }
  for (int r = 0; r < c.k_rank; ++r) {
    Quad<A> sum{};
    const T* down = c.k_down + factor + r * M * S;
#pragma unroll 4
    for (int m = 0; m < M; ++m) add_product(sum, a(m), static_cast<A>(down[m * S]));
    k_hidden[r * static_cast<int>(blockDim.x)] = sum;
  }
  for (int n = 0; n < M; ++n) {
    const Quad<A> x = a(n);
    Quad<A> y = x;
    if (c.q_gate.data) add_product(y, x, q_gate[n]);
    if (c.k_gate) add_product(y, x, static_cast<A>(c.k_gate[(tile.pair() * M + n) * S + key]));
    for (int r = 0; r < c.q_rank; ++r) add_product(y, hidden[r * static_cast<int>(blockDim.x)], q_up[r * M + n]);
    for (int r = 0; r < c.k_rank; ++r) {
      add_product(y, k_hidden[r * static_cast<int>(blockDim.x)], static_cast<A>(c.k_up[factor + (r * M + n) * S]));
    }
    if (c.base) {
      const T* base = c.base + tile.group * c.base_group + n * c.base_write;
#pragma unroll 4
      for (int m = 0; m < M; ++m) add_product(y, a(m), static_cast<A>(base[m * c.base_read]));
    }
    out(n, y);
  }
}

// The parts of a block's shared memory.
template <class A>
struct SharedMemory {
  Quad<A>*queries, *rows, *column, *hidden;  // column and hidden: of this thread
  __device__ explicit SharedMemory(const SharedMemoryPlan& layout) {
    queries = dynamic_shared<Quad<A>>();
    rows = queries + layout.items * layout.heads;
    Quad<A>* columns = rows + layout.row_values * layout.heads;
    column = columns + threadIdx.x;
    hidden = columns + layout.columns * layout.heads * layout.threads + threadIdx.x;
  }
};

}  // namespace braid::cuda::attention::generic
