// Shared by the four kernels of DCMHA on tensor cores: a block of 8 warps keeps 128 keys, 16 to a warp, with the
// weights of these keys in registers (key_factors.cuh), while groups of query rows stream through shared memory. The
// next group is copied while the present one is computed.
#pragma once
#include "braid/cuda/attention/kernels.h"
#include "braid/cuda/attention/tile.cuh"

namespace braid::cuda::attention::tensor_core {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
template <int N>
constexpr int kRows = 64 / N;  // query rows of a group

inline dim3 grid_of(const ScoreBlock& c) { return dim3(c.key_blocks(), c.segments, c.samples * c.panels); }

// One group of rows in shared memory. 16 bytes between the warps' parts spread their keys of one row over the banks.
template <int N, int tensors, int matrices, int statistics>
struct PipelineStage {
  struct Part {
    bfloat16 row[kRows<N>][N * kTilePitch];
    bfloat16 padding[16];
  };
  static constexpr int kTensor = kWarps * static_cast<int>(sizeof(Part) / sizeof(bfloat16));  // from one to the next
  Part tile[tensors][kWarps];
  bfloat16 matrix[matrices][kRows<N>][N * kMatrixPitch<N>];
  float statistic[statistics > 0 ? statistics : 1][kRows<N>][N];  // of a row and a head
};

// The coordinates of a thread: its warp's 16 keys, and its block's groups of rows of a panel.
template <int N>
struct BlockCoord {
  int lane, warp, sample, panel;
  uint32_t diagonal;               // diagonal_mask
  int rows, columns, first_key;    // of the panel
  int block_column, column;        // of the block, of the warp
  int segment_begin, segment_end;  // groups of this block, and of these
  int begin, end;                  // those in which a row has an unmasked key here

  __device__ __forceinline__ explicit BlockCoord(const ScoreBlock& c)
      : lane(static_cast<int>(threadIdx.x % 32)),
        warp(static_cast<int>(threadIdx.x / 32)),
        sample(static_cast<int>(blockIdx.z) / c.panels),
        panel(static_cast<int>(blockIdx.z) % c.panels),
        diagonal(kept(diagonal_mask(lane))),
        rows(c.rows_of(panel)),
        columns(c.columns_of(panel)),
        first_key(c.first_key_of(panel)),
        block_column(static_cast<int>(blockIdx.x) * kBlockKeys),
        column(block_column + 16 * warp) {
    const int groups = (c.panel_rows + kRows<N> - 1) / kRows<N>, each = (groups + c.segments - 1) / c.segments;
    segment_begin = min(groups, static_cast<int>(blockIdx.y) * each);
    segment_end = min(groups, segment_begin + each);
    const int shift = c.shift_of(panel);
    begin_ = c.begin_shift + shift;
    end_ = c.end_shift + shift;
    keys_ = c.key_columns_of(panel);
    const int first = max(block_column, -first_key), last = min(block_column + kBlockKeys, c.key_columns_of(panel)) - 1;
    // One of first ... last is unmasked for a row when row + begin_shift <= last and row + end_shift > first.
    const int rows_begin = max(0, first - c.end_shift - shift + 1),
              rows_end = min(rows, last - c.begin_shift - shift + 1);
    begin = max(segment_begin, rows_begin / kRows<N>);
    end = rows_end <= rows_begin ? begin : max(begin, min(segment_end, (rows_end + kRows<N> - 1) / kRows<N>));
    if (begin >= segment_end || first > last) begin = end = segment_end;
  }
  // Whether the panel has columns here: the narrow ones leave blocks of the grid without work.
  __device__ __forceinline__ bool in_panel() const { return block_column < columns; }
  __device__ __forceinline__ bool active() const { return column < columns; }
  __device__ __forceinline__ Unmasked unmasked(int row) const {  // of this warp's keys
    return {max(max(0, -first_key - column), row + begin_ - column), min(16, min(keys_, row + end_) - column)};
  }
  // Whether all of this warp's keys are unmasked for `count` rows: both ends of the unmasked keys grow with the row.
  __device__ __forceinline__ bool all_unmasked(int row, int count) const {
    return max(-first_key, row + count - 1 + begin_) <= column && column + 16 <= min(keys_, row + end_);
  }
  // The panel's rows [begin, end) for which one of 8 columns from `first` on is unmasked.
  struct Rows {
    int begin, end;
  };
  __device__ __forceinline__ Rows rows_of_piece(int first) const {
    const bool keys = first < keys_ && first + 8 > -first_key;
    return {first - end_ + 1, keys ? first + 8 - begin_ : 0};
  }
  // An element of the panel's scores. A block's buffers have less than 2^31 elements each.
  __device__ __forceinline__ int offset(const ScoreBlock& c, int head, int row, int at_column) const {
    return (sample * N + head) * c.head_stride + panel * c.panel_stride + row * c.pitch + at_column;
  }
  // The place of the panel's first row in memory in which samples have `of_sample` rows each.
  __device__ __forceinline__ int first_row(const ScoreBlock& c, int of_sample) const {
    return sample * of_sample + panel * c.panel_rows;
  }

 private:
  int begin_, end_, keys_;  // unmasked keys of the warp for row r: r + begin_ ... min(keys_, r + end_) - 1
};

// The sources of a group's copies.
template <int N, int tensors, int matrices, int statistics>
struct Source {
  const bfloat16* tensor[tensors];                          // (samples, N, rows, columns)
  const bfloat16* matrix[matrices];                         // (samples, rows, N, N)
  const float* statistic[statistics > 0 ? statistics : 1];  // (samples, queries, N), from the block's first row on
};

// The addresses that this lane passes to ldmatrix, stmatrix and loads, for any of the rows in the two stages.
template <int N, int tensors, int matrices, int statistics>
class StageReader {
  using G = PipelineStage<N, tensors, matrices, statistics>;

 public:
  __device__ __forceinline__ StageReader(G (&stage)[2], const BlockCoord<N>& at)
      : tile_(kept_shared(stage[0].tile[0][at.warp].row[0] + tile_row(at.lane))),
        matrix_(kept_shared(stage[0].matrix[0][0] + matrix_row<N>(at.lane))),
        transposed_(stage[0].matrix[0][0] + transposed_row<N>(at.lane)),
        padding_(kept_shared(stage[0].tile[tensors > 1 ? at.lane / 8 % 2 : 0][at.warp].row[0] +
                             (at.lane / 16 * 8 + at.lane % 8) * kTilePitch + 16)),
        statistic_(stage[0].statistic[0][0] + at.lane % 4 * 2) {}
  __device__ __forceinline__ bfloat16* tile(int stage, int tensor, int r) const {
    return tile_ + distance(stage, r) + tensor * G::kTensor;
  }
  // The padding that kTilePitch leaves behind the keys of each head, 8 elements, holds spilled B-fragments: one of 16
  // keys and all heads in the padding of two tensors of a row, another in that of the next row. Spills 0 and 1 have two
  // rows each.
  __device__ __forceinline__ bfloat16* padding(int number) const {
    static_assert(tensors >= 2, "a spill needs the padding of two tensors");
    return padding_ + distance(2 * number / kRows<N>, 2 * number % kRows<N>);
  }
  // In shared memory, from the tile of the first row to that of any.
  static __device__ __forceinline__ int distance(int stage, int r) { return stage * kStep + r * (N * kTilePitch); }
  __device__ __forceinline__ const bfloat16* matrix(int stage, int k, int r) const {
    return matrix_ + stage * kStep + (k * kRows<N> + r) * (N * kMatrixPitch<N>);
  }
  __device__ __forceinline__ const bfloat16* transposed(int stage, int k, int r) const {
    return transposed_ + stage * kStep + (k * kRows<N> + r) * (N * kMatrixPitch<N>);
  }
  __device__ __forceinline__ const float* statistic(int stage, int k, int r) const {
    return statistic_ + stage * (kStep / 2) + (k * kRows<N> + r) * N;
  }

 private:
  static constexpr int kStep = sizeof(G) / sizeof(bfloat16);
  bfloat16* tile_;
  const bfloat16 *matrix_, *transposed_;
  bfloat16* padding_;
  const float* statistic_;
};

// Whether scores are read, and their gradients between the two kernels of backward written, only in pieces of 8 keys of
// which one is unmasked for the row; the others are zeros in shared memory. With 32 heads registers do not suffice.
template <int N>
constexpr bool kUnmaskedPieces = N == 16;

// This thread's 16 bytes of a group: 8 of the block's keys in one row, of every kHeads-th head from `head` on.
template <int N>
struct PieceOfGroup {
  static constexpr int kPieces = kBlockKeys / 8, kHeads = kThreads / kPieces / kRows<N>;
  int piece = static_cast<int>(threadIdx.x) % kPieces, row = static_cast<int>(threadIdx.x) / kPieces % kRows<N>,
      head = static_cast<int>(threadIdx.x) / kPieces / kRows<N>;

  __device__ __forceinline__ int column(const BlockCoord<N>& at) const { return at.block_column + piece * 8; }
  template <class Part>
  __device__ __forceinline__ auto* of(Part (&tile)[kWarps]) const {  // in the tiles of all warps
    return tile[piece / 2].row[row] + head * kTilePitch + piece % 2 * 8;
  }
};

// Copies groups, 16 bytes at a time. Columns beyond the last are zeros or copies of the last ones, which no result
// uses; rows beyond the last are left out.
template <int N, int tensors, int matrices, int statistics>
class AsyncTileLoader {
  using G = PipelineStage<N, tensors, matrices, statistics>;

 public:
  __device__ __forceinline__ AsyncTileLoader(G (&stage)[2], const ScoreBlock& c, const BlockCoord<N>& at,
                                             const Source<N, tensors, matrices, statistics>& from)
      : from_(from),
        rows_(at.rows),
        pitch_(c.pitch),
        head_step_(kHeads * c.head_stride),
        thread_(static_cast<int>(threadIdx.x)),
        matrix_(at.first_row(c, c.rows) * (N * N) + thread_ * 8),
        statistic_(at.first_row(c, c.queries) * N + thread_ * 4),
        row_(PieceOfGroup<N>().row) {
    const PieceOfGroup<N> own;
    unmasked_ = at.rows_of_piece(own.column(at));
    offset_ = at.offset(c, own.head, row_, min(own.column(at), at.columns - 8));
    to_tile_ = kept_shared(own.of(stage[0].tile[0]));
    to_matrix_ = kept_shared(stage[0].matrix[0][0] + thread_ / (N / 8) * kMatrixPitch<N> + thread_ % (N / 8) * 8);
    to_statistic_ = stage[0].statistic[0][0] + thread_ * 4;
  }

  __device__ __forceinline__ void copy(int stage, int row0) const {
    constexpr int step = sizeof(G) / sizeof(bfloat16);
    const int left = rows_ - row0;
    if (row_ < left) {  // the same piece of the same row of several heads
      int at = kept(offset_ + row0 * pitch_);
      const int row = row0 + row_;
      const bool valid = !kUnmaskedPieces<N> || (row >= unmasked_.begin && row < unmasked_.end);
#pragma unroll
      for (int head = 0; head < N; head += kHeads, at += head_step_) {
#pragma unroll
        for (int k = 0; k < tensors; ++k)
          copy_async<16>(to_tile_ + stage * step + k * G::kTensor + head * kTilePitch, from_.tensor[k] + at, valid);
      }
    }
    constexpr int of_matrix = N * N / 8, of_row = N / 4;  // pieces of a row
    if (thread_ < min(left, kRows<N>) * of_matrix) {
      const int at = kept(matrix_ + row0 * (N * N));
#pragma unroll
      for (int k = 0; k < matrices; ++k)
        copy_async<16>(to_matrix_ + stage * step + k * (kRows<N> * N * kMatrixPitch<N>), from_.matrix[k] + at);
    }
    if (statistics > 0 && thread_ < min(left, kRows<N>) * of_row) {
      const int at = kept(statistic_ + row0 * N);
#pragma unroll
      for (int k = 0; k < statistics; ++k)
        copy_async<16>(to_statistic_ + stage * (step / 2) + k * (kRows<N> * N), from_.statistic[k] + at);
    }
  }

 private:
  static constexpr int kHeads = PieceOfGroup<N>::kHeads;  // at a time
  const Source<N, tensors, matrices, statistics>& from_;
  const int rows_, pitch_, head_step_, thread_, matrix_, statistic_, row_;
  int offset_;
  typename BlockCoord<N>::Rows unmasked_;
  bfloat16 *to_tile_, *to_matrix_;
  float* to_statistic_;
};

// work(first row, number of rows, stage) for the groups begin ... end - 1 of a place, each copied during the work on
// the one before it.
template <int N, int tensors, int matrices, int statistics, class Work>
__device__ __forceinline__ void stream(PipelineStage<N, tensors, matrices, statistics> (&stage)[2], const ScoreBlock& c,
                                       const BlockCoord<N>& at, const Source<N, tensors, matrices, statistics>& from,
                                       Work work) {
  const AsyncTileLoader<N, tensors, matrices, statistics> loader(stage, c, at, from);
  if (at.begin < at.end) loader.copy(at.begin & 1, at.begin * kRows<N>);
  copy_async_commit();
#pragma unroll 1
  for (int group = at.begin; group < at.end; ++group) {
    const int row0 = group * kRows<N>;
    copy_async_wait<0>();
    __syncthreads();  // all threads have this group, and none reads the one before it any more
    if (group + 1 < at.end) loader.copy((group + 1) & 1, row0 + kRows<N>);
    copy_async_commit();
    work(row0, min(kRows<N>, at.rows - row0), group & 1);
  }
}

// ---- results ----

// Zeros in the rows of the block's segment for which all of its keys are masked; in a window also behind the last row,
// up to which products read it. `to`, here and below: scores.
template <int N>
__device__ __forceinline__ void zero_masked_rows(bfloat16* to, const ScoreBlock& c, const BlockCoord<N>& at) {
  constexpr int pieces = kBlockKeys / 8;  // of 16 bytes
  const int thread = static_cast<int>(threadIdx.x), column = at.block_column + thread % pieces * 8;
  if (column >= at.columns) return;
  const int last = min(c.windows() ? c.panel_rows : at.rows, at.segment_end * kRows<N>);
#pragma unroll 1
  for (int row = at.segment_begin * kRows<N>; row < last; ++row) {
    if (row == at.begin * kRows<N> && at.begin < at.end) row = min(at.rows, at.end * kRows<N>);
    if (row >= last) return;
#pragma unroll
    for (int head = 0; head < N; head += kThreads / pieces)
      *reinterpret_cast<uint4*>(to + at.offset(c, thread / pieces + head, row, column)) = uint4{0, 0, 0, 0};
  }
}

// Writes the 128 keys of a block for a group of rows, which all its warps have put into shared memory: 256 neighbouring
// bytes at a time.
template <int N, class Part>
class GroupWriter {
 public:
  __device__ __forceinline__ GroupWriter(const Part (&tile)[kWarps], const ScoreBlock& c, const BlockCoord<N>& at)
      : head_step_(kHeads * c.head_stride), pitch_(c.pitch), row_(PieceOfGroup<N>().row) {
    const PieceOfGroup<N> own;
    active_ = own.column(at) < at.columns;
    unmasked_ = at.rows_of_piece(own.column(at));
    offset_ = at.offset(c, own.head, row_, own.column(at));
    tile_ = kept_shared(own.of(tile));
  }
  // The first `rows` of the group; `distance`: from the tiles that the writer was made for. unmasked: of gradients that
  // AsyncTileLoader reads again, the pieces that it reads.
  template <bool unmasked = false>
  __device__ __forceinline__ void write(bfloat16* to, int distance, int row0, int rows) const {
    const int row = row0 + row_;
    if (!active_ || row_ >= rows) return;
    if (unmasked && kUnmaskedPieces<N> && (row < unmasked_.begin || row >= unmasked_.end)) return;
    int at = kept(offset_ + row0 * pitch_);
#pragma unroll
    for (int head = 0; head < N; head += kHeads, at += head_step_)
      *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(tile_ + distance + head * kTilePitch);
  }

 private:
  static constexpr int kHeads = PieceOfGroup<N>::kHeads;  // at a time
  const int head_step_, pitch_, row_;
  bool active_;
  int offset_;
  typename BlockCoord<N>::Rows unmasked_;
  const bfloat16* tile_;
};

// Writes the warp's 16 keys of a row from shared memory [N][kTilePitch]. Two lanes move a head's 32 bytes; the heads of
// 8 lanes are those whose pieces lie in different banks.
template <int N>
class TileWriter {
 public:
  __device__ __forceinline__ TileWriter(const bfloat16* tile, const ScoreBlock& c, const BlockCoord<N>& at)
      : head_step_(16 * c.head_stride),
        pitch_(c.pitch),
        active_(at.active()),
        offset_(at.offset(c, head_of(at.lane), 0, at.column + at.lane % 2 * 8)),
        tile_(kept_shared(tile + head_of(at.lane) * kTilePitch + at.lane % 2 * 8)) {}
  __device__ __forceinline__ void write(bfloat16* to, int row) const {
    if (!active_) return;
    const int at = kept(offset_ + row * pitch_);
#pragma unroll
    for (int head = 0; head < N; head += 16)
      *reinterpret_cast<uint4*>(to + (at + head / 16 * head_step_)) =
          *reinterpret_cast<const uint4*>(tile_ + head * kTilePitch);
  }

 private:
  static __device__ __forceinline__ int head_of(int lane) { return lane / 16 * 8 + lane % 8 / 2 * 2 + lane / 8 % 2; }

  const int head_step_, pitch_;
  const bool active_;
  const int offset_;
  const bfloat16* const tile_;
};

}  // namespace braid::cuda::attention::tensor_core
