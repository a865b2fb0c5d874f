// Kernels that read and write by ids. Ids are in range (the op checked them).
#include <algorithm>
#include <bit>

#include "braid/cuda/device/index_view.cuh"
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/row_reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/index.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

// Calls f with an unsigned type of the elements' size, for kernels that only move elements.
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
__global__ void __launch_bounds__(kThreads)
    index_select_kernel(RowPartition rows, const Unit* table, Ids ids, Unit* y) {
  int64_t r = rows.row(), n = rows.length(r);
  if (n == 0) return;
  const Unit* from = table + ids[r] * n;
  Unit* to = y + r * n;
  for (int64_t i = rows.lane(); i < n; i += rows.team) to[i] = from[i];
}

template <class Unit>
void select_rows(In table, In ids, Out y, int64_t bytes) {
  RowLaunch plan = plan_units(ids.numel(), bytes / static_cast<int64_t>(sizeof(Unit)), kThreads);
  launch(index_select_kernel<Unit>, plan.launch, plan.rows, static_cast<const Unit*>(table.raw()), Ids(ids),
         static_cast<Unit*>(y.mutable_raw()));
}

// y[r] = x[r, ids[r]]
template <class Unit>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(int64_t count, int64_t pitch, const Unit* x, Ids ids, Unit* y) {
  int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r < count) y[r] = x[r * pitch + ids[r]];
}

// dx[r, j] = dy[r] where j = ids[r], else 0
template <class Unit>
__global__ void __launch_bounds__(kMaxTeam) scatter_kernel(RowPartition rows, const Unit* dy, Ids ids, Unit* dx) {
  constexpr int W = kVectorWidth<Unit>;
  int64_t r = rows.row();
  if (r >= rows.count) return;
  Unit* row = dx + r * rows.n;
  int64_t id = ids[r], first = int64_t{W} * rows.lane() - shift_of(row);
  Unit value = dy[r];
  for (int64_t i = first; i < rows.n; i += int64_t{W} * rows.team) {
    Pack<Unit> pack;
#pragma unroll
    for (int j = 0; j < W; ++j) pack[j] = i + j == id ? value : Unit(0);
    store_pack(row, i, rows.n, pack);
  }
}

// y[positions[i]] = values[i]
template <class Unit>
__global__ void __launch_bounds__(kThreads) put_kernel(int64_t count, const Unit* values, Ids positions, Unit* y) {
  int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) y[positions[i]] = values[i];
}

// The smallest and the largest id: one block, because the list is short and a launch costs more than the loop.
__global__ void __launch_bounds__(1024) index_range_kernel(Ids ids, int64_t count, int64_t* low_high) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    low = std::min(low, ids[i]);
    high = std::max(high, ids[i]);
  }
  low = ~block_max(~low);  // ~ turns the order round, also of INT64_MIN
  high = block_max(high);
  if (threadIdx.x == 0) {
    low_high[0] = count > 0 ? low : 0;
    low_high[1] = count > 0 ? high : -1;
  }
}

// dtable[v] += sum over the i with ids[i] = v, in order, of dy[i]; the same bits always, without atomics.
//
// 1. Keys (id, position) are sorted: chunks of up to 4096 by one block each, in shared memory; then each key finds its
//    place among the other chunks by binary search. Keys are all different, so the order is one only.
// 2. The sorted list is cut into segments of 32 keys. A warp processes a segment for some columns: it sums the rows of
//    one id after the other. A sum within the segment is added to the table; a sum that reaches beyond it is a part.
// 3. For each sum that was cut, one warp adds the parts in order.
//
// So the load is balanced for any ids: 16k different ones, or one 16k times.

using Key = uint64_t;  // id, then position, 32 bits each
constexpr Key kNoKey = ~Key{0};
constexpr int kChunk = 4096, kSegment = 32, kWarps = 8;
constexpr int64_t kMaxKeys = (int64_t{1} << 32) - 1;  // of which 32 bits hold id and position, and no key is kNoKey
constexpr int64_t kMaxStripes = 4096;                 // of columns, side by side in gridDim.y

__device__ int64_t id_of(Key key) { return static_cast<int64_t>(key >> 32); }
__device__ int64_t position_of(Key key) { return static_cast<int64_t>(key & 0xffffffffu); }

// The first index in sorted keys[low, high) whose key is at least `key`; high if there is none.
__device__ int64_t first_at_least(Key key, const Key* keys, int64_t low, int64_t high) {
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (keys[middle] < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// One block sorts one chunk: a bitonic network over `size` keys, a power of two.
__global__ void __launch_bounds__(1024) sort_chunks_kernel(Ids ids, int64_t count, int size, Key* keys) {
  Key* chunk = dynamic_shared<Key>();
  int64_t begin = int64_t{blockIdx.x} * size;
  int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < size; i += threads) {
    int64_t p = begin + i;
    chunk[i] = p < count ? static_cast<Key>(ids[p]) << 32 | static_cast<Key>(p) : kNoKey;
  }
  for (int width = 2; width <= size; width *= 2) {
    for (int distance = width / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int k = thread; k < size / 2; k += threads) {
        int a = 2 * k - (k & (distance - 1)), b = a + distance;
        bool upwards = (a & width) == 0;
        Key x = chunk[a], y = chunk[b];
        if ((x > y) == upwards) {
          chunk[a] = y;
          chunk[b] = x;
        }
      }
    }
  }
  __syncthreads();
  for (int i = thread; i < size && begin + i < count; i += threads) keys[begin + i] = chunk[i];
}

// The position of a key in the sorted list: its position in its chunk plus the number of smaller keys in the others.
__global__ void __launch_bounds__(256) merge_chunks_kernel(const Key* chunks, int64_t count, int size, Key* sorted) {
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Key key = chunks[i];
  int64_t own = i / size, place = i - own * size;
  for (int64_t begin = 0; begin < count; begin += size) {
    if (begin == own * size) continue;
    place += first_at_least(key, chunks, begin, std::min(begin + size, count)) - begin;
  }
  sorted[place] = key;
}

// The parts of a segment: of a sum that began before it, and of one that continues after it.
enum : int { kFromBefore, kContinues, kCut };

template <class A>
__device__ A* part_of(A* parts, int64_t segment, int which, int64_t n) {
  return parts + (segment * kCut + which) * n;
}

// table row += sum, in the columns [i, i + W)
template <class T, int W>
__device__ void add_to_row(T* row, int64_t i, int64_t n, const Pack<Accumulate<T>, W>& sum) {
  Pack<T, W> pack = load_pack<W>(row, i, n);
#pragma unroll
  for (int j = 0; j < W; ++j) pack[j] = T(Accumulate<T>(pack[j]) + sum[j]);
  store_pack(row, i, n, pack);
}

// A warp: one segment, 32 packs of columns, and those gridDim.y stripes further. parts: (segments, 2, n)
template <class T>
__global__ void __launch_bounds__(32 * kWarps)
    add_segments_kernel(const Key* keys, int64_t count, const T* dy, int64_t n, T* table, Accumulate<T>* parts) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>, kAhead = 8;
  int lane = static_cast<int>(threadIdx.x) % 32;
  int64_t segment = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32, begin = segment * kSegment;
  if (begin >= count) return;
  int length = static_cast<int>(std::min<int64_t>(kSegment, count - begin));
  Key mine = lane < length ? keys[begin + lane] : kNoKey;
  int64_t before = begin > 0 ? id_of(keys[begin - 1]) : -1;
  int64_t after = begin + length < count ? id_of(keys[begin + length]) : -1;
  for (int64_t stripe = blockIdx.y; stripe * 32 * W < n; stripe += gridDim.y) {
    int64_t column = (stripe * 32 + lane) * W;
    Pack<A, W> sum{};
    for (int base = 0; base < length; base += kAhead) {
      Pack<T> rows[kAhead];  // several loads in flight
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        int64_t position = position_of(__shfl_sync(~0u, mine, base + k));
        if (base + k < length) rows[k] = load_pack<W>(dy + position * n, column, n);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        int at = base + k;
        int64_t id = id_of(__shfl_sync(~0u, mine, at)), next = id_of(__shfl_sync(~0u, mine, (at + 1) % 32));
        if (at >= length) continue;
#pragma unroll
        for (int j = 0; j < W; ++j) sum[j] += A(rows[k][j]);
        if (at + 1 == length) next = after;
        if (id == next && at + 1 < length) continue;
        if (id == before) {
          store_pack(part_of(parts, segment, kFromBefore, n), column, n, sum);
        } else if (id == next) {
          store_pack(part_of(parts, segment, kContinues, n), column, n, sum);
        } else {
          add_to_row(table + id * n, column, n, sum);
        }
        sum = {};
      }
    }
  }
}

// A warp: the sum that continues after one segment, if there is one, and columns as above.
template <class T>
__global__ void __launch_bounds__(32 * kWarps)
    add_parts_kernel(const Key* keys, int64_t count, const Accumulate<T>* parts, int64_t n, T* table) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  int64_t segment = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32, end = (segment + 1) * kSegment;
  if (end >= count) return;
  int64_t id = id_of(keys[end - 1]), begin = end - kSegment;
  if (id_of(keys[end]) != id || (begin > 0 && id_of(keys[begin - 1]) == id)) return;
  int64_t behind = first_at_least(static_cast<Key>(id + 1) << 32, keys, end, count);
  int64_t last = (behind - 1) / kSegment;  // the segment in which the sum ends
  for (int64_t stripe = blockIdx.y; stripe * 32 * W < n; stripe += gridDim.y) {
    int64_t column = (stripe * 32 + threadIdx.x % 32) * W;
    Pack<A, W> sum = load_pack<W>(part_of(parts, segment, kContinues, n), column, n);
#pragma unroll 4
    for (int64_t s = segment + 1; s <= last; ++s) {
      Pack<A, W> part = load_pack<W>(part_of(parts, s, kFromBefore, n), column, n);
#pragma unroll
      for (int j = 0; j < W; ++j) sum[j] += part[j];
    }
    add_to_row(table + id * n, column, n, sum);
  }
}

// Keys (id, position) in order, as i64 (count).
Tensor sorted_keys(In ids) {
  int64_t count = ids.numel();
  int size = static_cast<int>(std::min<int64_t>(kChunk, int64_t(std::bit_ceil(static_cast<uint64_t>(count)))));
  int64_t chunks = (count + size - 1) / size;
  Tensor keys = empty({count}, DType::i64, ids.device());
  launch(sort_chunks_kernel,
         {.grid = static_cast<unsigned>(chunks),
          .block = static_cast<unsigned>(std::clamp(size / 2, 32, 1024)),
          .shared_bytes = static_cast<size_t>(size) * sizeof(Key)},
         Ids(ids), count, size, static_cast<Key*>(keys.mutable_raw()));
  if (chunks == 1) return keys;
  Tensor sorted = empty_like(keys);
  launch(merge_chunks_kernel, {.grid = static_cast<unsigned>((count + 255) / 256), .block = 256},
         static_cast<const Key*>(keys.raw()), count, size, static_cast<Key*>(sorted.mutable_raw()));
  return sorted;
}

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
  const int64_t pitch = x.rank() == 2 ? x.strides()[0] : x.dim(-1);
  visit_size(x.dtype(), [&]<class Unit>() {
    launch(gather_kernel<Unit>, {.grid = blocks_for(ids.numel()), .block = kThreads}, ids.numel(), pitch,
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

void put(In values, In positions, Out y) {
  if (positions.numel() == 0) return;
  visit_size(y.dtype(), [&]<class Unit>() {
    launch(put_kernel<Unit>, {.grid = blocks_for(positions.numel()), .block = kThreads}, positions.numel(),
           static_cast<const Unit*>(values.raw()), Ids(positions), static_cast<Unit*>(y.mutable_raw()));
  });
}

void min_max(In ids, Out low_high) {
  launch(index_range_kernel, {.grid = 1, .block = 1024}, Ids(ids), ids.numel(), low_high.mutable_data<int64_t>());
}

void index_add(In dy, In ids, Out dtable) {
  int64_t count = ids.numel();
  if (count == 0 || dtable.numel() == 0) return;
  check(count < kMaxKeys && dtable.dim(0) < kMaxKeys, "index_add", [&] {
    return str("the GPU adds fewer than 2^32 - 1 rows by their ids into fewer than 2^32 - 1; found ", count, " into ",
               dtable.shape(), "; add them in parts");
  });
  int64_t n = dtable.numel() / dtable.dim(0), segments = (count + kSegment - 1) / kSegment;
  Tensor keys = sorted_keys(ids);
  visit_float(dy.dtype(), "index_add", [&]<class T>() {
    using A = Accumulate<T>;
    int64_t columns = int64_t{32} * kVectorWidth<T>;
    Tensor parts = empty({segments, kCut, n}, dtype_of<A>(), dy.device());
    Launch shape{.grid = {static_cast<unsigned>((segments + kWarps - 1) / kWarps),
                          static_cast<unsigned>(std::min((n + columns - 1) / columns, kMaxStripes))},
                 .block = 32 * kWarps};
    const Key* sorted = static_cast<const Key*>(keys.raw());
    launch(add_segments_kernel<T>, shape, sorted, count, dy.data<T>(), n, dtable.mutable_data<T>(),
           parts.mutable_data<A>());
    if (segments > 1) {
      launch(add_parts_kernel<T>, shape, sorted, count, parts.data<A>(), n, dtable.mutable_data<T>());
    }
  });
}

}  // namespace

constinit const IndexKernels index_kernels{
    .select = index_select,
    .add = index_add,
    .gather = gather,
    .scatter = scatter,
    .put = put,
    .min_max = min_max,
};

}  // namespace braid::cuda
