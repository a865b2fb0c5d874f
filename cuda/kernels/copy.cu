// Copies between any layouts and types, and fills.
//
// A copy within one type moves bytes: where the layouts allow it, neighbouring elements are moved together, up to 16
// bytes at a time. A transposition goes through tiles in shared memory, so that both sides are accessed along their
// own cache lines. A copy between types loads and stores vectors of both.
#include "braid/cuda/device/kernel.h"

#include "braid/cuda/device/elementwise.cuh"
#include "braid/tensor/kernels/copy.h"

namespace braid::cuda {

namespace {

constexpr int kEach = 4;  // elements of a thread

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count - 1) / (kThreads * kEach) + 1); }

// offsets: in x and in y.
template <class W>
__global__ void __launch_bounds__(kThreads) copy_elements(const W* x, W* y, Offsets<2> offsets) {
  const int64_t first = int64_t{blockIdx.x} * (kThreads * kEach) + threadIdx.x;
  if (first >= offsets.count) return;
  int64_t index[kEach], place[kEach][2];
  W values[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int64_t i = first + j * kThreads;
    index[j] = i < offsets.count ? i : first;
  }
  offsets.at(index, place);
#pragma unroll
  for (int j = 0; j < kEach; ++j) values[j] = x[place[j][0]];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    if (j == 0 || index[j] != first) y[place[j][1]] = values[j];
  }
}

template <class W>
__global__ void __launch_bounds__(kThreads) fill_elements(W value, W* y, Offsets<1> offsets) {
  const int64_t first = int64_t{blockIdx.x} * (kThreads * kEach) + threadIdx.x;
  int64_t index[kEach], place[kEach][1];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int64_t i = first + j * kThreads;
    index[j] = i < offsets.count ? i : 0;
  }
  offsets.at(index, place);
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    if (first + j * kThreads < offsets.count) y[place[j][0]] = value;
  }
}

// x runs along `row`, y along `column`; outer: the other axes.
struct Transposition {
  Axis<2> row, column;
  Offsets<2> outer;
  int64_t row_tiles, column_tiles;
};

template <class W>
inline constexpr int kSide = sizeof(W) <= 2 ? 64 : 32;  // of a tile

template <class W>
__global__ void __launch_bounds__(kThreads) copy_tiles(const W* x, W* y, Transposition t) {
  constexpr int side = kSide<W>, step = kThreads / side;
  struct Tile {
    W at[side][side + (sizeof(W) < 4 ? 4 / sizeof(W) : 1)];  // so that a column lies in as many banks as a row
  };
  Tile& tile = shared<Tile>();
  const int64_t block = blockIdx.x, tiles = t.row_tiles * t.column_tiles;
  const int64_t r0 = block % tiles / t.column_tiles * side, c0 = block % t.column_tiles * side;
  const int lane = static_cast<int>(threadIdx.x) % side, first = static_cast<int>(threadIdx.x) / side;
  int64_t outer[2];
  t.outer.at(block / tiles, outer);
  x += outer[0] + r0 * t.row.stride[0] + c0 * t.column.stride[0];
  y += outer[1] + r0 * t.row.stride[1] + c0 * t.column.stride[1];
  const int64_t rows = t.row.size - r0, columns = t.column.size - c0;
#pragma unroll
  for (int n = 0; n < side / step; ++n) {
    const int k = first + n * step;
    if (lane < rows && k < columns) tile.at[k][lane] = x[lane * t.row.stride[0] + k * t.column.stride[0]];
  }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < side / step; ++n) {
    const int k = first + n * step;
    if (k < rows && lane < columns) y[k * t.row.stride[1] + lane * t.column.stride[1]] = tile.at[lane][k];
  }
}

// Calls f with an unsigned type of so many bytes.
template <class F>
void visit_word(int64_t bytes, F&& f) {
  switch (bytes) {
    case 16:
      return f.template operator()<Word<16>>();
    case 8:
      return f.template operator()<Word<8>>();
    case 4:
      return f.template operator()<Word<4>>();
    case 2:
      return f.template operator()<Word<2>>();
    default:
      return f.template operator()<Word<1>>();
  }
}

// Sorts the axes by the stride of the last view, largest first.
template <int K>
void sort_axes(Axis<K>* axes, int count) {
  for (int a = 1; a < count; ++a) {
    for (int b = a; b > 0 && axes[b - 1].stride[K - 1] < axes[b].stride[K - 1]; --b) std::swap(axes[b - 1], axes[b]);
  }
}

// The largest number of bytes that one instruction can move, for views of elements of `size` bytes at these addresses.
template <int K>
int64_t widest(const Offsets<K>& offsets, int64_t size, std::initializer_list<const void*> data) {
  for (int64_t bytes = 16; bytes > size; bytes /= 2) {
    bool fits = offsets.innermost().size * size % bytes == 0;
    for (int k = 0; k < K; ++k) fits = fits && offsets.innermost().stride[k] == 1;
    for (int a = 1; a < offsets.rank; ++a) {
      for (int k = 0; k < K; ++k) fits = fits && offsets.axis(a).stride[k] * size % bytes == 0;
    }
    for (const void* p : data) fits = fits && reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
    if (fits) return bytes;
  }
  return size;
}

void copy_dense(const void* x, void* y, int64_t bytes) {
  const Axis<2> whole{bytes, {1, 1}};
  const int64_t width = widest(Offsets<2>(&whole, 1), 1, {x, y});
  visit_word(width, [&]<class W>() {
    const Axis<2> axis{bytes / width, {1, 1}};
    launch(copy_elements<W>, {.grid = blocks_for(axis.size), .block = kThreads}, static_cast<const W*>(x),
           static_cast<W*>(y), Offsets<2>(&axis, 1));
  });
}

void copy_same_type(In x, Out y) {
  const int64_t size = size_of(x.dtype());
  Axis<2> axes[Shape::max_rank];
  int count = 0;
  for (int a = 0; a < x.rank(); ++a) {
    if (x.dim(a) != 1) axes[count++] = {x.dim(a), {x.strides()[a], y.strides()[a]}};
  }
  sort_axes(axes, count);
  const Offsets<2> all(axes, count);
  const Axis<2>& column = all.innermost();
  if (all.rank == 1 && column.stride[0] == 1 && column.stride[1] == 1) {
    // The rest of a dense copy after the last 16 bytes is copied separately.
    const int64_t bytes = column.size * size, rest = bytes % 16;
    if (bytes > rest) copy_dense(x.raw(), y.mutable_raw(), bytes - rest);
    if (rest > 0) {
      copy_dense(static_cast<const std::byte*>(x.raw()) + (bytes - rest),
                 static_cast<std::byte*>(y.mutable_raw()) + (bytes - rest), rest);
    }
    return;
  }
  int fast = 0;  // the axis along which x is dense
  for (int a = 0; a < all.rank; ++a) {
    if (all.axis(a).stride[0] == 1) fast = a;
  }
  constexpr int64_t kWorthTiles = 8;
  if (fast > 0 && column.stride[0] != 0 && column.size >= kWorthTiles && all.axis(fast).size >= kWorthTiles) {
    Axis<2> others[Shape::max_rank];
    int outer = 0;
    for (int a = all.rank - 1; a > 0; --a) {
      if (a != fast) others[outer++] = all.axis(a);
    }
    const Axis<2>& row = all.axis(fast);
    visit_word(size, [&]<class W>() {
      if constexpr (sizeof(W) <= 8) {
        const Transposition t{row, column, Offsets<2>(others, outer), (row.size - 1) / kSide<W> + 1,
                              (column.size - 1) / kSide<W> + 1};
        launch(copy_tiles<W>,
               {.grid = static_cast<unsigned>(t.outer.count * t.row_tiles * t.column_tiles), .block = kThreads},
               static_cast<const W*>(x.raw()), static_cast<W*>(y.mutable_raw()), t);
      }
    });
    return;
  }
  const int64_t width = widest(all, size, {x.raw(), y.raw()});
  visit_word(width, [&]<class W>() {
    const Offsets<2> offsets = all.in_words_of(width / size);
    launch(copy_elements<W>, {.grid = blocks_for(offsets.count), .block = kThreads}, static_cast<const W*>(x.raw()),
           static_cast<W*>(y.mutable_raw()), offsets);
  });
}

// visit_any for device code.
template <class F>
__device__ __forceinline__ void visit_element(DType t, F&& f) {
  switch (t) {
    case DType::f64:
      return f.template operator()<double>();
    case DType::f32:
      return f.template operator()<float>();
    case DType::bf16:
      return f.template operator()<bfloat16>();
    case DType::f16:
      return f.template operator()<float16>();
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::i32:
      return f.template operator()<int32_t>();
    case DType::u8:
      return f.template operator()<uint8_t>();
  }
}

constexpr int kConverted = 8;  // elements of a thread: a vector of the 16-bit types

// From one type to another by way of A: float where both have 32 bits or fewer and are floating, i64 from there, else
// double. The kernel branches on the types: three kernels instead of 42.
template <class A, class T>
inline constexpr bool kGoesBy = sizeof(A) == 8 || (!std::is_integral_v<T> && sizeof(T) <= 4);
bool goes_by_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

template <class A>
__global__ void __launch_bounds__(kThreads)
    convert_elements(ElementRange<kConverted> range, DType from, Operand x, DType to, Operand y) {
  if (range.empty()) return;
  A values[kConverted] = {};
  visit_element(from, [&]<class T>() {
    if constexpr (kGoesBy<A, T>) load<T>(x, range, values);
  });
  visit_element(to, [&]<class T>() {
    if constexpr (kGoesBy<A, T>) store<T>(y, range, values);
  });
}

// Is a row-major neighbour far away, while another axis is dense?
bool is_transposed(In x) {
  const Offsets<1> o = offsets(x);
  for (int a = 1; a < o.rank; ++a) {
    if (o.axis(a).stride[0] == 1 && o.innermost().stride[0] > 1) return true;
  }
  return false;
}

void copy(In x, Out y) {
  if (y.numel() == 0) return;
  if (x.dtype() == y.dtype()) return copy_same_type(x, y);
  if (is_transposed(x)) return copy(x.clone(), y);  // by tiles first
  const Operand source = operand<kConverted>(x), result = operand<kConverted>(y);
  const ElementRange<kConverted> range(result);
  if (goes_by_float(x.dtype()) && goes_by_float(y.dtype()))
    launch_elements<kConverted>(convert_elements<float>, range, x.dtype(), source, y.dtype(), result);
  else if (x.dtype() == DType::i64)
    launch_elements<kConverted>(convert_elements<int64_t>, range, x.dtype(), source, y.dtype(), result);
  else
    launch_elements<kConverted>(convert_elements<double>, range, x.dtype(), source, y.dtype(), result);
}

void fill(double value, Out y) {
  if (y.numel() == 0) return;
  const int64_t size = size_of(y.dtype());
  // The element's bytes, repeated.
  alignas(16) std::byte pattern[16];
  visit_any(y.dtype(), [&]<class T>() {
    const T element = convert<T>(value);
    for (int64_t at = 0; at < 16; at += size) std::memcpy(pattern + at, &element, sizeof(T));
  });
  Axis<1> axes[Shape::max_rank];
  for (int a = 0; a < y.rank(); ++a) axes[a] = {y.dim(a), {y.strides()[a]}};
  sort_axes(axes, y.rank());
  const Offsets<1> all(axes, y.rank());
  const int64_t width = widest(all, size, {y.raw()});
  visit_word(width, [&]<class W>() {
    W word;
    std::memcpy(&word, pattern, sizeof(W));
    const Offsets<1> offsets = all.in_words_of(width / size);
    launch(fill_elements<W>, {.grid = blocks_for(offsets.count), .block = kThreads}, word,
           static_cast<W*>(y.mutable_raw()), offsets);
  });
}

}  // namespace

constinit const CopyKernels copy_kernels{
    .strided = copy,
    .fill = fill,
};

}  // namespace braid::cuda
