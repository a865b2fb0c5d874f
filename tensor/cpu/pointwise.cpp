// Pointwise kernels: the formulas of tensor/kernels/pointwise_ops.h over contiguous blocks.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::cpu {

namespace {

// Loops over contiguous arrays; output and input are the same array or do not overlap.
template <UnaryOp op, class T, class A = Accumulate<T>>
void forward_loop(int64_t n, double scale, double shift, const T* x, T* y) {
  const A a = A(scale), b = A(shift);
  map(n, y, inputs(x), [a, b](A u) { return pointwise::Unary<op, A>::forward(u, a, b); });
}
template <UnaryOp op, class T, class A = Accumulate<T>>
void backward_loop(int64_t n, double scale, double shift, const T* x, const T* dy, T* dx) {
  const A a = A(scale), b = A(shift);
  map(n, dx, inputs(x, dy), [a, b](A u, A g) { return pointwise::Unary<op, A>::backward(g, u, a, b); });
}
// x or y may repeat one element.
template <BinaryOp op, bool repeats_x, bool repeats_y, class T, class A = Accumulate<T>>
void forward_loop(int64_t n, const T* x, const T* y, T* z) {
  constexpr auto f = pointwise::Binary<op, A>::forward;
  if constexpr (repeats_x)
    map(n, z, inputs(y), [u = A(*x)](A v) { return f(u, v); });
  else if constexpr (repeats_y)
    map(n, z, inputs(x), [v = A(*y)](A u) { return f(u, v); });
  else
    map(n, z, inputs(x, y), [](A u, A v) { return f(u, v); });
}
template <BinaryOp op, class T, class A = Accumulate<T>>
void d_dx_loop(int64_t n, const T* x, const T* y, const T* dz, T* dx) {
  map(n, dx, inputs(x, y, dz), [](A u, A v, A g) { return pointwise::Binary<op, A>::d_dx(g, u, v); });
}
template <BinaryOp op, class T, class A = Accumulate<T>>
void d_dy_loop(int64_t n, const T* x, const T* y, const T* dz, T* dy) {
  map(n, dy, inputs(x, y, dz), [](A u, A v, A g) { return pointwise::Binary<op, A>::d_dy(g, u, v); });
}
// Both at once: everything is loaded before anything is stored, because dx or dy may be the same array as an input.
template <BinaryOp op, class T, class A = Accumulate<T>>
void d_dx_d_dy_loop(int64_t n, const T* x, const T* y, const T* dz, T* dx, T* dy) {
  using Op = pointwise::Binary<op, A>;
  map(n, std::array{dx, dy}, inputs(x, y, dz), [](A u, A v, A g) {
    return std::array{Op::d_dx(g, u, v), Op::d_dy(g, u, v)};
  });
}

constexpr int64_t cost_of(UnaryOp op) {
  switch (op) {
    case UnaryOp::affine:
    case UnaryOp::quotient:
    case UnaryOp::square:
    case UnaryOp::abs:
    case UnaryOp::relu:
    case UnaryOp::clamp:
    case UnaryOp::cube:
      return 1;
    case UnaryOp::pow:
      return 32;
    default:
      return 8;
  }
}
constexpr int64_t cost_of(BinaryOp op) { return op == BinaryOp::swiglu ? 8 : 1; }

void unary(UnaryOp op, double a, double b, In x, Out y) {
  visit_float(x.dtype(), "unary", [&]<class T>() {
    pointwise::visit(pointwise::simplest(op, a), [&]<UnaryOp o>() {
      Tensor nx = make_contiguous_if_far(x);
      StridedView lx(nx), ly(y);
      for_blocks(y.numel(), cost_of(o), [&](int64_t i, int64_t n) {
        BlockBuffer<T> bx, by;
        const T* px = load<T>(lx, i, n, bx);
        T* py = output_block<T>(ly, i, n, by);
        forward_loop<o>(n, a, b, px, py);
        store(ly, i, n, py);
      });
    });
  });
}

void unary_backward(UnaryOp op, double a, double b, In x, In dy, Out dx) {
  visit_float(x.dtype(), "unary_backward", [&]<class T>() {
    pointwise::visit(pointwise::simplest(op, a), [&]<UnaryOp o>() {
      Tensor nx = make_contiguous_if_far(x), ng = make_contiguous_if_far(dy);
      StridedView lx(nx), lg(ng), ld(dx);
      for_blocks(dx.numel(), cost_of(o), [&](int64_t i, int64_t n) {
        BlockBuffer<T> bx, bg, bd;
        const T *px = load<T>(lx, i, n, bx), *pg = load<T>(lg, i, n, bg);
        T* pd = output_block<T>(ld, i, n, bd);
        backward_loop<o>(n, a, b, px, pg, pd);
        store(ld, i, n, pd);
      });
    });
  });
}

// Row by row, where x and y need no conversion, not both are dense (one repeats along an axis, or is a slice) and rows
// are long: calls row(repeats_x, repeats_y, n, x, y, z), the first two of type std::bool_constant. False: not done.
template <class A, class Z, class Row>
bool by_rows(In x, In y, Out z, int64_t cost, Row&& row) {
  constexpr int64_t kShortest = 64, kPiece = 4096;
  if (x.dtype() != dtype_of<A>() || y.dtype() != x.dtype() || z.dtype() != dtype_of<Z>() || z.numel() == 0)
    return false;
  const Rows rows(x, y, z);
  const int64_t n = rows.row.size, *stride = rows.row.stride;
  const bool fit = stride[0] <= 1 && stride[1] <= 1 && stride[0] + stride[1] > 0 && stride[2] == 1;
  const bool dense = rows.count == 0 && stride[0] == stride[1];
  if (!fit || dense || n < kShortest) return false;
  const int64_t pieces = detail::ceil_div(n, kPiece);
  const A *from_x = x.data<A>(), *from_y = y.data<A>();
  Z* to = z.mutable_data<Z>();
  parallel_for(
      items(rows.axes, rows.count) * pieces, grain_for(std::min(n, kPiece) * cost), [&](int64_t begin, int64_t end) {
        Walk<3> at(rows.axes, rows.count, begin / pieces);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % pieces * kPiece, length = std::min(n - first, kPiece);
          const A *px = from_x + at.offset[0] + first * stride[0], *py = from_y + at.offset[1] + first * stride[1];
          Z* pz = to + at.offset[2] + first;
          if (stride[0] == 0)
            row(std::true_type(), std::false_type(), length, px, py, pz);
          else if (stride[1] == 0)
            row(std::false_type(), std::true_type(), length, px, py, pz);
          else
            row(std::false_type(), std::false_type(), length, px, py, pz);
          if (first + kPiece >= n) at.next();
        }
      });
  return true;
}

void binary(BinaryOp op, In x, In y, Out z) {
  visit_float(x.dtype(), "binary", [&]<class T>() {
    pointwise::visit(op, [&]<BinaryOp o>() {
      if (by_rows<T, T>(x, y, z, cost_of(o),
                        [](auto repeats_x, auto repeats_y, int64_t n, const T* px, const T* py, T* pz) {
                          forward_loop<o, repeats_x, repeats_y>(n, px, py, pz);
                        }))
        return;
      Tensor nx = make_contiguous_if_far(x), ny = make_contiguous_if_far(y);
      StridedView lx(nx), ly(ny), lz(z);
      for_blocks(z.numel(), cost_of(o), [&](int64_t i, int64_t n) {
        BlockBuffer<T> bx, by, bz;
        const T *px = load<T>(lx, i, n, bx), *py = load<T>(ly, i, n, by);
        T* pz = output_block<T>(lz, i, n, bz);
        forward_loop<o, false, false>(n, px, py, pz);
        store(lz, i, n, pz);
      });
    });
  });
}

void binary_backward(BinaryOp op, In x, In y, In dz, Out dx, Out dy) {
  visit_float(x.dtype(), "binary_backward", [&]<class T>() {
    pointwise::visit(op, [&]<BinaryOp o>() {
      Tensor nx = make_contiguous_if_far(x), ny = make_contiguous_if_far(y), ng = make_contiguous_if_far(dz);
      StridedView lx(nx), ly(ny), lg(ng), ldx(dx ? dx : dz), ldy(dy ? dy : dz);
      bool want_x = bool(dx), want_y = bool(dy);
      for_blocks(dz.numel(), cost_of(o), [&](int64_t i, int64_t n) {
        BlockBuffer<T> bx, by, bg, bdx, bdy;
        const T *px = load<T>(lx, i, n, bx), *py = load<T>(ly, i, n, by), *pg = load<T>(lg, i, n, bg);
        T* pdx = want_x ? output_block<T>(ldx, i, n, bdx) : nullptr;
        T* pdy = want_y ? output_block<T>(ldy, i, n, bdy) : nullptr;
        if (want_x && want_y)
          d_dx_d_dy_loop<o>(n, px, py, pg, pdx, pdy);
        else if (want_x)
          d_dx_loop<o>(n, px, py, pg, pdx);
        else if (want_y)
          d_dy_loop<o>(n, px, py, pg, pdy);
        if (want_x) store(ldx, i, n, pdx);
        if (want_y) store(ldy, i, n, pdy);
      });
    });
  });
}

// Calls f with the type that holds every value of `t` exactly: float, double, or int64_t for integers.
template <class F>
void visit_exact(DType t, F&& f) {
  is_float(t) ? visit_accumulate(t, "pointwise", f) : f.template operator()<int64_t>();
}

template <CompareOp op, bool repeats_x, bool repeats_y, class A>
void compare_row(int64_t n, const A* x, const A* y, uint8_t* mask) {
  const A u = *x, v = *y;
  BRAID_IVDEP  // no overlap
  for (int64_t i = 0; i < n; ++i) mask[i] = pointwise::holds(op, repeats_x ? u : x[i], repeats_y ? v : y[i]);
}

template <CompareOp op>
void compare_by(In x, In y, Out mask) {
  visit_exact(x.dtype(), [&]<class A>() {
    if (by_rows<A, uint8_t>(x, y, mask, 1,
                            [](auto repeats_x, auto repeats_y, int64_t n, const A* px, const A* py, uint8_t* out) {
                              compare_row<op, repeats_x, repeats_y>(n, px, py, out);
                            }))
      return;
    Tensor nx = make_contiguous_if_far(x), ny = make_contiguous_if_far(y);
    StridedView lx(nx), ly(ny);
    uint8_t* out = mask.mutable_data<uint8_t>();
    for_blocks(mask.numel(), 1, [&](int64_t i, int64_t n) {
      A bx[kBlock], by[kBlock];
      compare_row<op, false, false>(n, load(lx, i, n, bx), load(ly, i, n, by), out + i);
    });
  });
}

void compare(CompareOp op, In x, In y, Out mask) {
  switch (op) {
    case CompareOp::eq:
      return compare_by<CompareOp::eq>(x, y, mask);
    case CompareOp::ne:
      return compare_by<CompareOp::ne>(x, y, mask);
    case CompareOp::lt:
      return compare_by<CompareOp::lt>(x, y, mask);
    case CompareOp::le:
      return compare_by<CompareOp::le>(x, y, mask);
  }
}

void where(In mask, In x, In y, Out z) {
  visit_exact(x.dtype(), [&]<class A>() {
    Tensor nx = make_contiguous_if_far(x), ny = make_contiguous_if_far(y);
    StridedView lm(mask), lx(nx), ly(ny), lz(z);
    for_blocks(z.numel(), 1, [&](int64_t i, int64_t n) {
      A bm[kBlock], bx[kBlock], by[kBlock], bz[kBlock];
      const A *pm = load(lm, i, n, bm), *px = load(lx, i, n, bx), *py = load(ly, i, n, by);
      A* pz = output_block(lz, i, n, bz);
      for (int64_t j = 0; j < n; ++j) pz[j] = pm[j] != A(0) ? px[j] : py[j];
      store(lz, i, n, pz);
    });
  });
}

void masked_fill(In x, In mask, double value, Out y) {
  visit_accumulate(x.dtype(), "masked_fill", [&]<class A>() {
    StridedView lx(x), lm(mask), ly(y);
    for_blocks(y.numel(), 1, [&](int64_t i, int64_t n) {
      A bx[kBlock], bm[kBlock], by[kBlock];
      const A *px = load(lx, i, n, bx), *pm = load(lm, i, n, bm);
      A* py = output_block(ly, i, n, by);
      BRAID_IVDEP
      for (int64_t j = 0; j < n; ++j) py[j] = pm[j] != A(0) ? A(value) : px[j];
      store(ly, i, n, py);
    });
  });
}

// Row by row: fill before the first unmasked key, copy the unmasked ones, fill after the last.
void mask_scores(In x, const AttentionMask& mask, double value, Out y) {
  visit_accumulate(x.dtype(), "mask_scores", [&]<class A>() {
    int64_t queries = x.dim(-2), keys = x.dim(-1);
    if (x.numel() == 0) return;
    StridedView lx(x), ly(y);
    parallel_for(x.numel() / keys, grain_for(keys), [&](int64_t begin, int64_t end) {
      A bx[kBlock], by[kBlock];
      for (int64_t row = begin; row < end; ++row) {
        int64_t unmasked_end = mask.end(row % queries, keys), first = mask.first(row % queries);
        if (first > unmasked_end) first = unmasked_end;
        for (int64_t s = 0; s < keys; s += kBlock) {
          int64_t i = row * keys + s, n = keys - s < kBlock ? keys - s : kBlock;
          A* py = output_block(ly, i, n, by);
          int64_t from = first - s < 0 ? 0 : first - s < n ? first - s : n;
          int64_t to = unmasked_end - s < from ? from : unmasked_end - s < n ? unmasked_end - s : n;
          if (from < to) {
            const A* px = load(lx, i, n, bx);
            if (px != py) std::memcpy(py + from, px + from, static_cast<size_t>(to - from) * sizeof(A));
          }
          for (int64_t j = 0; j < from; ++j) py[j] = A(value);
          for (int64_t j = to; j < n; ++j) py[j] = A(value);
          store(ly, i, n, py);
        }
      }
    });
  });
}

}  // namespace

constinit const PointwiseKernels pointwise_kernels{
    .unary = unary,
    .unary_backward = unary_backward,
    .binary = binary,
    .binary_backward = binary_backward,
    .compare = compare,
    .where = where,
    .masked_fill = masked_fill,
    .mask_scores = mask_scores,
};

}  // namespace braid::cpu
