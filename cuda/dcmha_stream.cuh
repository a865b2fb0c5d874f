// What the four kernels of DCMHA share: a block of 8 warps keeps 128 keys, 16 to a warp, with the weights of these keys
// in registers, while groups of query rows stream through shared memory, the next group on its way during the work on
// the present one.
#pragma once
#include "cuda/dcmha_kernels.h"
#include "cuda/dcmha_tile.cuh"

namespace braid::cuda::dcmha_fast {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
template <int N>
constexpr int kRows = 64 / N;  // query rows of a group

// One group in shared memory. 16 bytes between the warps' parts spread their keys of one row over the banks.
template <int N, int tensors, int matrices, int statistics>
struct Group {
  struct Part {
    bfloat16 row[kRows<N>][N * kTilePitch];
    bfloat16 gap[16];
  };
  Part tile[tensors][kWarps];
  bfloat16 matrix[matrices][kRows<N>][N * kMatrixPitch<N>];
  float statistic[statistics > 0 ? statistics : 1][kRows<N>][N];  // of a row and a head
};

// Where a thread stands: its warp's 16 keys, and its block's groups of rows.
template <int N>
struct Place {
  int lane, warp, sample;
  int block_column, column;        // of the block, of the warp
  int segment_begin, segment_end;  // groups that this block answers for, and of these
  int begin, end;                  // the ones in which some row sees one of its keys

  __device__ __forceinline__ explicit Place(const Chunk& c)
      : lane(static_cast<int>(threadIdx.x % 32)),
        warp(static_cast<int>(threadIdx.x / 32)),
        sample(static_cast<int>(blockIdx.z)),
        block_column(static_cast<int>(blockIdx.x) * kBlockKeys),
        column(block_column + 16 * warp) {
    const int groups = (c.rows + kRows<N> - 1) / kRows<N>, each = (groups + c.segments - 1) / c.segments;
    segment_begin = min(groups, static_cast<int>(blockIdx.y) * each);
    segment_end = min(groups, segment_begin + each);
    const int first = block_column, last = min(first + kBlockKeys, c.key_columns) - 1;
    // A row sees one of first ... last when row + begin_shift <= last and row + end_shift > first.
    const int rows_begin = max(0, first - c.end_shift + 1), rows_end = min(c.rows, last - c.begin_shift + 1);
    begin = max(segment_begin, rows_begin / kRows<N>);
    end = rows_end <= rows_begin ? begin : max(begin, min(segment_end, (rows_end + kRows<N> - 1) / kRows<N>));
    if (begin >= segment_end) begin = end = segment_end;
  }
  __device__ __forceinline__ bool active(const Chunk& c) const { return column < c.columns; }
  __device__ __forceinline__ Seen seen(const Chunk& c, int row) const {  // of this warp's keys
    return {max(0, row + c.begin_shift - column), min(16, min(c.key_columns, row + c.end_shift) - column)};
  }
  // This sample's part of (samples, N, rows, columns), which has less than 2^31 elements; and an element of it.
  template <class T>
  __device__ __forceinline__ T* of_sample(T* data, const Chunk& c) const {
    return data + static_cast<size_t>(sample) * N * c.rows * c.columns;
  }
  __device__ __forceinline__ int offset(const Chunk& c, int head, int row, int at_column) const {
    return (head * c.rows + row) * c.columns + at_column;
  }
};

// What a group is copied from.
template <int N, int tensors, int matrices, int statistics>
struct Source {
  // All of the block's sample:
  const bfloat16* tensor[tensors];                          // (N, rows, columns)
  const bfloat16* matrix[matrices];                         // (rows, N, N)
  const float* statistic[statistics > 0 ? statistics : 1];  // (rows, N)
};

// Rows and columns that do not exist are copies of the last ones; nobody uses them.
template <int N, int tensors, int matrices, int statistics>
__device__ __forceinline__ void fetch(Group<N, tensors, matrices, statistics>& to, const Chunk& c, const Place<N>& at,
                                      const Source<N, tensors, matrices, statistics>& from, int group) {
  constexpr int rows = kRows<N>, pieces = kBlockKeys / 8;  // a piece is 16 bytes
  const int row0 = group * rows, thread = static_cast<int>(threadIdx.x % kThreads);
  {  // a thread moves the same piece of the same row of several heads
    const int piece = thread % pieces, row = thread / pieces % rows, head0 = thread / pieces / rows;
    const int column = min(at.block_column + piece * 8, c.columns - 8);
    const int offset = at.offset(c, head0, min(row0 + row, c.rows - 1), column);
    const int to_offset = head0 * kTilePitch + piece % 2 * 8;
#pragma unroll
    for (int k = 0; k < tensors; ++k) {
#pragma unroll
      for (int head = 0; head < N; head += kThreads / pieces / rows)
        copy_async<16>(to.tile[k][piece / 2].row[row] + to_offset + head * kTilePitch,
                       from.tensor[k] + offset + head * c.rows * c.columns);
    }
  }
  if (thread < rows * N * N / 8) {
    constexpr int each = N * N / 8;
    const int at_row = thread / (N / 8), piece = thread % (N / 8);
    const int i = min(row0 + thread / each, c.rows - 1) * each + thread % each;
#pragma unroll
    for (int k = 0; k < matrices; ++k)
      copy_async<16>(to.matrix[k][0] + at_row * kMatrixPitch<N> + piece * 8, from.matrix[k] + i * 8);
  }
  if (thread < rows * N / 4) {
    constexpr int each = N / 4;
    const int i = min(row0 + thread / each, c.rows - 1) * each + thread % each;
#pragma unroll
    for (int k = 0; k < statistics; ++k) copy_async<16>(to.statistic[k][0] + thread * 4, from.statistic[k] + i * 4);
  }
}

// work(first row, the group in shared memory) for the groups begin ... end - 1 of a place, each fetched during the work
// on the one before it.
template <int N, int tensors, int matrices, int statistics, class Work>
__device__ __forceinline__ void stream(Group<N, tensors, matrices, statistics> (&stage)[2], const Chunk& c,
                                       const Place<N>& at, const Source<N, tensors, matrices, statistics>& from,
                                       Work work) {
  if (at.begin < at.end) fetch(stage[at.begin & 1], c, at, from, at.begin);
  copy_async_commit();
#pragma unroll 1
  for (int group = at.begin; group < at.end; ++group) {
    copy_async_wait<0>();
    __syncthreads();  // this group is there for all, and nobody reads the one before it any more
    if (group + 1 < at.end) fetch(stage[(group + 1) & 1], c, at, from, group + 1);
    copy_async_commit();
    work(group * kRows<N>, stage[group & 1]);
  }
}

// ---- weights and gradients of the warp's keys ----

// Of one factor for 16 keys: element (key, head) of rank r is data[key's token, r, head]; zero where absent.
template <int N>
__device__ __forceinline__ void load_factor(Packed<N>& w, const Factor& f, bool present, int rank, const Chunk& c,
                                            const Place<N>& at) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = c.first_key + at.column + at.lane / 4 + 8 * half;
    const bool valid = present && at.active(c) && key < c.keys;
    const bfloat16* const from =
        f.data + (valid ? (c.first_sample + at.sample) * f.sample + key * f.token + rank * f.rank : 0);
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      const int head = 8 * n + at.lane % 4 * 2;
      w[n / 2][n % 2 * 2 + half] = valid ? from[head].bits | static_cast<uint32_t>(from[head + 1].bits) << 16 : 0;
    }
  }
}
template <int N>
__device__ __forceinline__ void load_weights(KeyWeights<N>& w, const Factors& f, const Chunk& c, const Place<N>& at) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    load_factor<N>(w.down[r], f.down, f.down.data && r < f.rank, r, c, at);
    load_factor<N>(w.up[r], f.up, f.up.data && r < f.rank, r, c, at);
  }
  load_factor<N>(w.gate, f.gate, f.gate.data != nullptr, 0, c, at);
}

// x = compose(x) with a = x packed; sum = the down products of the keys, which the derivative needs too.
template <int N>
__device__ __forceinline__ void compose_forward(Wide<N>& x, const Packed<N>& a, const bfloat16* matrix, int lane,
                                                const KeyWeights<N>& w, float (&sum)[2][4]) {
  sum_heads<N>(sum, a, w.down);
  compose<N, false>(x, a, matrix, lane, w.gate, w.up, sum);
}

// ---- results ----

// Zeros in the rows of the block's segment that see none of its keys. `to`, here and below: (N, rows, columns).
template <int N>
__device__ __forceinline__ void zero_unseen_rows(bfloat16* to, const Chunk& c, const Place<N>& at) {
  constexpr int pieces = kBlockKeys / 8;
  const int last = min(c.rows, at.segment_end * kRows<N>);
#pragma unroll 1
  for (int row = at.segment_begin * kRows<N>; row < last; ++row) {
    if (row == at.begin * kRows<N>) row = at.end * kRows<N>;
    if (row >= last) return;
    for (int i = static_cast<int>(threadIdx.x); i < N * pieces; i += kThreads) {
      const int column = at.block_column + i % pieces * 8;
      if (column < c.columns) *reinterpret_cast<uint4*>(to + at.offset(c, i / pieces, row, column)) = uint4{0, 0, 0, 0};
    }
  }
}

// The warp's 16 keys of one row, from shared memory [N][kTilePitch].
template <int N>
__device__ __forceinline__ void write_row(bfloat16* to, const bfloat16* tile, const Chunk& c, const Place<N>& at,
                                          int row) {
  const int head0 = at.lane / 2, half = at.lane % 2 * 8;
#pragma unroll
  for (int head = 0; head < N; head += 16)
    *reinterpret_cast<uint4*>(to + at.offset(c, head0 + head, row, at.column + half)) =
        *reinterpret_cast<const uint4*>(tile + (head0 + head) * kTilePitch + half);
}

}  // namespace braid::cuda::dcmha_fast
