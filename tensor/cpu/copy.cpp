// Copies between any strides and types, and fills.
#include <cstring>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/convert.h"
#include "braid/tensor/cpu/gemm/vector.h"
#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/kernels/copy.h"
#include "braid/tensor/trace_device.h"

namespace braid::cpu {

namespace {

template <class F>
void visit_bytes(DType t, F&& f) {
  switch (size_of(t)) {
    case 8:
      return f.template operator()<uint64_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 2:
      return f.template operator()<uint16_t>();
    default:
      return f.template operator()<uint8_t>();
  }
}

using CopyAxis = Axis<2>;
int64_t from(const CopyAxis& a) { return a.stride[0]; }
int64_t to(const CopyAxis& a) { return a.stride[1]; }

// The axes of a copy, outermost first in the result's order of strides, neighbours merged, size 1 dropped.
int copy_axes(In x, In y, CopyAxis* axes) {
  int rank = 0;
  for (int a = 0; a < x.rank(); ++a) {
    CopyAxis axis{x.dim(a), {x.strides()[a], y.strides()[a]}};
    if (axis.size == 1) continue;
    int at = rank++;
    for (; at > 0 && to(axes[at - 1]) < to(axis); --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  int merged = 0;
  for (int a = 0; a < rank; ++a) {
    const CopyAxis next = axes[a];
    CopyAxis& last = axes[merged > 0 ? merged - 1 : 0];
    if (merged > 0 && from(last) == next.size * from(next) && to(last) == next.size * to(next)) {
      last = {last.size * next.size, {from(next), to(next)}};
    } else {
      axes[merged++] = next;
    }
  }
  if (merged == 0) axes[merged++] = {1, {1, 1}};
  return merged;
}

template <class T>
void copy_row(int64_t n, const T* x, int64_t step_x, T* y, int64_t step_y) {
  if (step_x == 1 && step_y == 1) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
  } else if (step_x == -1 && step_y == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[-i];
  } else if (step_y == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * step_x];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * step_y] = x[i * step_x];
  }
}

constexpr int64_t kTile = 64;  // elements per side of a tile

// A rows x columns tile of a transposition, the source's rows contiguous: each cache line of either side is touched
// once per tile, not once per element.
template <class T>
void copy_tile(const T* x, T* y, const CopyAxis& row, const CopyAxis& column, int64_t rows, int64_t columns) {
  if (to(column) == 1 && rows % 8 == 0 && columns % 8 == 0) {  // squares in registers
    using V = Vector<T, 8>;
    for (int64_t i = 0; i < rows; i += 8) {
      for (int64_t j = 0; j < columns; j += 8) {
        V v[8];
        for (int64_t c = 0; c < 8; ++c) v[c] = load<V>(x + i + (j + c) * from(column));
        transpose8(v);
        for (int64_t r = 0; r < 8; ++r) store(y + (i + r) * to(row) + j, v[r]);
      }
    }
    return;
  }
  T tile[kTile][kTile];
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) tile[i][j] = x[i * from(row) + j * from(column)];
  }
  for (int64_t i = 0; i < rows; ++i) copy_row<T>(columns, tile[i], 1, y + i * to(row), to(column));
}

template <class T>
void copy_same_type(In x, Out y) {
  const T* source = static_cast<const T*>(x.raw());
  T* result = static_cast<T*>(y.mutable_raw());
  CopyAxis axes[Shape::max_rank];
  int rank = copy_axes(x, y, axes);
  CopyAxis inner = axes[rank - 1];
  if (rank == 1) {
    constexpr int64_t kPiece = 16384;
    parallel_for(detail::ceil_div(inner.size, kPiece), 2, [&](int64_t begin, int64_t end) {
      int64_t i = begin * kPiece, n = (end * kPiece < inner.size ? end * kPiece : inner.size) - i;
      copy_row(n, source + i * from(inner), from(inner), result + i * to(inner), to(inner));
    });
    return;
  }
  // The source's fastest axis, when it is not the result's: then the copy is a transposition of these two.
  int fast = rank - 1;
  for (int a = 0; a < rank; ++a) {
    if (from(axes[a]) == 1) fast = a;
  }
  if (fast == rank - 1 || from(inner) == 0 || inner.size < 4 || axes[fast].size < 4) {
    parallel_for(items(axes, rank - 1), grain_for(inner.size), [&](int64_t begin, int64_t end) {
      Walk<2> at(axes, rank - 1, begin);
      for (int64_t r = begin; r < end; ++r, at.next()) {
        copy_row(inner.size, source + at.offset[0], from(inner), result + at.offset[1], to(inner));
      }
    });
    return;
  }
  CopyAxis row = axes[fast], outer[Shape::max_rank];
  int outers = 0;
  for (int a = 0; a < rank - 1; ++a) {
    if (a != fast) outer[outers++] = axes[a];
  }
  int64_t tiles_r = detail::ceil_div(row.size, kTile), tiles_c = detail::ceil_div(inner.size, kTile);
  parallel_for(items(outer, outers) * tiles_r * tiles_c, grain_for(kTile * kTile), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      Walk<2> at(outer, outers, t / (tiles_r * tiles_c));
      int64_t i = t / tiles_c % tiles_r * kTile, j = t % tiles_c * kTile;
      copy_tile(source + at.offset[0] + i * from(row) + j * from(inner),
                result + at.offset[1] + i * to(row) + j * to(inner), row, inner,
                row.size - i < kTile ? row.size - i : kTile, inner.size - j < kTile ? inner.size - j : kTile);
    }
  });
}

template <class A>
void copy_converting(In x, Out y) {
  StridedView lx(x), ly(y);
  for_blocks(y.numel(), 2, [&](int64_t i, int64_t n) {
    A buffer[kBlock];
    store(ly, i, n, load(lx, i, n, output_block(ly, i, n, buffer)));
  });
}

bool fits_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

void copy(In x, Out y) {
  if (y.numel() == 0 || TraceDevice::leaves_out(y)) return;
  if (x.dtype() == y.dtype()) return visit_bytes(x.dtype(), [&]<class T>() { copy_same_type<T>(x, y); });
  if (fits_float(x.dtype()) && fits_float(y.dtype())) return copy_converting<float>(x, y);
  if (x.dtype() == DType::i64) return copy_converting<int64_t>(x, y);  // not every one is an f64
  copy_converting<double>(x, y);
}

template <class A>
void fill_with(A value, Out y) {
  StridedView ly(y);
  for_blocks(y.numel(), 1, [&](int64_t i, int64_t n) {
    A buffer[kBlock];
    A* values = output_block(ly, i, n, buffer);
    for (int64_t j = 0; j < n; ++j) values[j] = value;
    store(ly, i, n, values);
  });
}

void fill(double value, Out y) {
  if (fits_float(y.dtype()))
    visit_float(y.dtype(), "fill", [&]<class T>() { fill_with(static_cast<float>(convert<T>(value)), y); });
  else
    fill_with(value, y);
}

}  // namespace

constinit const CopyKernels copy_kernels{
    .strided = copy,
    .fill = fill,
};

}  // namespace braid::cpu
