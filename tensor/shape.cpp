#include "braid/tensor/shape.h"

#include <algorithm>

namespace braid {

namespace {
// "; its axes are -2 to 1", or that there are none.
std::string axes_of(int rank) {
  return rank == 0 ? std::string("; it has none") : str("; its axes are ", -rank, " to ", rank - 1);
}
}  // namespace

void Shape::bad_axis(int axis) const {
  fail("shape", str("axis ", axis, " does not exist in ", *this, axes_of(rank_)));
}
void Shape::too_many(int64_t n) const {
  fail("shape", str("a tensor has at most ", max_rank, " axes; found one more of size ", n, " behind ", *this,
                    "; merge axes by reshape or flatten"));
}

std::string str(const Shape& shape) {
  std::string s = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) s += ", ";
    s += std::to_string(shape[i]);
  }
  return s + ")";
}

int64_t numel(const Shape& shape) {
  int64_t n = 1;
  bool overflow = false;
  for (int64_t size : shape) {
    check(size >= 0, "shape", [&] { return str("a size is negative in ", shape); });
    overflow = overflow || __builtin_mul_overflow(n, size, &n);
  }
  if (overflow) {  // a zero anywhere makes the tensor empty, whatever the other sizes
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    fail("shape", str("the number of elements of ", shape, " does not fit 63 bits"));
  }
  return n;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // Beyond 63 bits only in a tensor without elements, whose strides are never followed: (2^40, 2^40, 0).
    if (__builtin_mul_overflow(step, shape[i] > 0 ? shape[i] : 1, &step)) step = 0;
  }
  return strides;
}

int normal_axis(int axis, int rank, const char* op) {
  int i = axis < 0 ? axis + rank : axis;
  check(i >= 0 && i < rank, op,
        [&] { return str("axis ", axis, " does not exist in a tensor of rank ", rank, axes_of(rank)); });
  return i;
}

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    int64_t na = ia < 0 ? 1 : a[ia], nb = ib < 0 ? 1 : b[ib];
    check(na == nb || na == 1 || nb == 1, op,
          [&] { return str("shapes ", a, " and ", b, " do not broadcast: sizes must be equal or 1, from the right"); });
    out.push_back(na == 1 ? nb : na);
  }
  return out;
}

Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& to, const char* op) {
  int shift = to.rank() - shape.rank();
  check(shift >= 0, op, [&] { return str("cannot expand ", shape, " to ", to, ": that has fewer axes"); });
  Strides out;
  for (int i = 0; i < to.rank(); ++i) {
    int64_t size = i < shift ? 1 : shape[i - shift];
    check(size == to[i] || size == 1, op,
          [&] { return str("cannot expand ", shape, " to ", to, ": only sizes of 1 repeat, counted from the right"); });
    out.push_back(i < shift || (size == 1 && to[i] != 1) ? 0 : strides[i - shift]);
  }
  return out;
}

}  // namespace braid
