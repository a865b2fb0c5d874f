// Copies between any layouts and types, and fills.
#include <cstring>

#include "tensor/backend.h"
#include "tensor/cpu/loops.h"

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

struct Axis {
  int64_t size, from, to;  // number of elements, strides of the source and of the result
};

// The axes of a copy, outermost first in the result's order of strides, neighbours merged, size 1 dropped.
int copy_axes(In x, In y, Axis* axes) {
  int rank = 0;
  for (int a = 0; a < x.rank(); ++a) {
    Axis axis{x.dim(a), x.strides()[a], y.strides()[a]};
    if (axis.size == 1) continue;
    int at = rank++;
    for (; at > 0 && axes[at - 1].to < axis.to; --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  int merged = 0;
  for (int a = 0; a < rank; ++a) {
    Axis& last = axes[merged > 0 ? merged - 1 : 0];
    if (merged > 0 && last.from == axes[a].size * axes[a].from && last.to == axes[a].size * axes[a].to) {
      last = {last.size * axes[a].size, axes[a].from, axes[a].to};
    } else {
      axes[merged++] = axes[a];
    }
  }
  if (merged == 0) axes[merged++] = {1, 1, 1};
  return merged;
}

template <class T>
void copy_row(int64_t n, const T* x, int64_t step_x, T* y, int64_t step_y) {
  if (step_x == 1 && step_y == 1) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
  } else if (step_y == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * step_x];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * step_y] = x[i * step_x];
  }
}

// Walks the outer axes [0, count) from item `index` on; `from` and `to` are the element offsets of the current item.
struct Walk {
  const Axis* axes;
  int count;
  int64_t from = 0, to = 0, at[Shape::max_rank] = {};

  Walk(const Axis* outer, int n, int64_t index) : axes(outer), count(n) {
    for (int a = count - 1; a >= 0; --a) {
      at[a] = index % axes[a].size;
      index /= axes[a].size;
      from += at[a] * axes[a].from;
      to += at[a] * axes[a].to;
    }
  }
  void next() {
    for (int a = count - 1; a >= 0; --a) {
      from += axes[a].from;
      to += axes[a].to;
      if (++at[a] < axes[a].size) return;
      from -= axes[a].size * axes[a].from;
      to -= axes[a].size * axes[a].to;
      at[a] = 0;
    }
  }
};

int64_t product(const Axis* axes, int count) {
  int64_t n = 1;
  for (int a = 0; a < count; ++a) n *= axes[a].size;
  return n;
}

constexpr int64_t kTile = 32;  // a tile's rows on both sides fit the first-level cache

// y[i, j] = x[j, i] in tiles: each cache line of either side is touched once per tile instead of once per element.
template <class T>
void copy_tile(const T* x, T* y, const Axis& row, const Axis& column, int64_t rows, int64_t columns) {
  T tile[kTile][kTile];
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) tile[i][j] = x[i * row.from + j * column.from];
  }
  for (int64_t i = 0; i < rows; ++i) copy_row<T>(columns, tile[i], 1, y + i * row.to, column.to);
}

template <class T>
void copy_same_type(In x, Out y) {
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(y.mutable_raw());
  Axis axes[Shape::max_rank];
  int rank = copy_axes(x, y, axes);
  Axis inner = axes[rank - 1];
  if (rank == 1) {
    constexpr int64_t kPiece = 16384;
    parallel_for((inner.size + kPiece - 1) / kPiece, 2, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        int64_t i = b * kPiece, n = inner.size - i < kPiece ? inner.size - i : kPiece;
        copy_row(n, from + i * inner.from, inner.from, to + i * inner.to, inner.to);
      }
    });
    return;
  }
  // The source's fastest axis, when it is not the result's: then the copy is a transposition of these two.
  int fast = rank - 1;
  for (int a = 0; a < rank; ++a) {
    if (axes[a].from == 1 && axes[a].size > 1) fast = a;
  }
  if (fast == rank - 1 || inner.from == 0 || inner.size < 4 || axes[fast].size < 4) {
    parallel_for(product(axes, rank - 1), grain_for(inner.size), [&](int64_t begin, int64_t end) {
      Walk at(axes, rank - 1, begin);
      for (int64_t r = begin; r < end; ++r, at.next()) {
        copy_row(inner.size, from + at.from, inner.from, to + at.to, inner.to);
      }
    });
    return;
  }
  Axis row = axes[fast], outer[Shape::max_rank];
  int outers = 0;
  for (int a = 0; a < rank - 1; ++a) {
    if (a != fast) outer[outers++] = axes[a];
  }
  int64_t tiles_r = (row.size + kTile - 1) / kTile, tiles_c = (inner.size + kTile - 1) / kTile;
  parallel_for(product(outer, outers) * tiles_r * tiles_c, grain_for(kTile * kTile), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      Walk o(outer, outers, t / (tiles_r * tiles_c));
      int64_t i = t / tiles_c % tiles_r * kTile, j = t % tiles_c * kTile;
      copy_tile(from + o.from + i * row.from + j * inner.from, to + o.to + i * row.to + j * inner.to, row, inner,
                row.size - i < kTile ? row.size - i : kTile, inner.size - j < kTile ? inner.size - j : kTile);
    }
  });
}

template <class A>
void copy_converting(In x, Out y) {
  Layout lx(x), ly(y);
  for_blocks(y.numel(), 2, [&](int64_t i, int64_t n) {
    A buffer[kBlock];
    write(ly, i, n, read(lx, i, n, place(ly, i, n, buffer)));
  });
}

bool fits_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

}  // namespace

// Integers beyond 2^53 are rounded on their way to another type.
void copy(In x, Out y) {
  if (y.numel() == 0) return;
  if (x.dtype() == y.dtype()) return visit_bytes(x.dtype(), [&]<class T>() { copy_same_type<T>(x, y); });
  if (fits_float(x.dtype()) && fits_float(y.dtype())) return copy_converting<float>(x, y);
  copy_converting<double>(x, y);
}

void transfer(In x, Out y) { copy(x, y); }

void fill(double value, Out y) {
  auto run = [&]<class A>() {
    Layout ly(y);
    for_blocks(y.numel(), 1, [&](int64_t i, int64_t n) {
      A buffer[kBlock];
      A* values = place(ly, i, n, buffer);
      for (int64_t j = 0; j < n; ++j) values[j] = static_cast<A>(value);
      write(ly, i, n, values);
    });
  };
  if (fits_float(y.dtype()))
    run.operator()<float>();
  else
    run.operator()<double>();
}

}  // namespace braid::cpu
