// Shapes and views of reductions. For autograd/ops/*.cpp.
#pragma once
#include <vector>

#include "braid/autograd/ops.h"

namespace braid::axes {

inline std::vector<int> all_of(const Tensor& x) {
  std::vector<int> list;
  for (int a = 0; a < x.rank(); ++a) list.push_back(a);
  return list;
}

// The shape with size 1 along `axes`.
inline Shape kept_shape(const char* op, const Shape& shape, Axes axes) {
  Shape kept = shape;
  unsigned seen = 0;
  for (int axis : axes) {
    int a = normal_axis(axis, shape.rank(), op);
    check(!(seen >> a & 1u), op, [&] { return str("axis ", axis, " stands twice; name each axis once"); });
    seen |= 1u << a;
    kept[a] = 1;
  }
  return kept;
}

// `shape` without `axes`.
inline Shape dropped_shape(const Shape& shape, Axes axes) {
  unsigned drop = 0;
  for (int axis : axes) drop |= 1u << (axis < 0 ? axis + shape.rank() : axis);
  Shape left;
  for (int a = 0; a < shape.rank(); ++a) {
    if (!(drop >> a & 1u)) left.push_back(shape[a]);
  }
  return left;
}

// A view of x in which the reduced axes, at least one, are a single one, the last: ops along rows reduce any axes of x
// by it.
class Rows {
 public:
  Rows(const char* op, const Tensor& x, Axes axes)
      : kept(kept_shape(op, x.shape(), axes)), dropped(dropped_shape(x.shape(), axes)) {
    unsigned reduced = 0;
    for (int axis : axes) reduced |= 1u << (axis < 0 ? axis + x.rank() : axis);
    for (unsigned last : {0u, 1u})
      for (int a = 0; a < x.rank(); ++a)
        if ((reduced >> a & 1u) == last) order_.push_back(a);
    moved_ = order_ != all_of(x);
    for (int a : order_) permuted_.push_back(x.dim(a));
    for (int a = dropped.rank(); a < x.rank(); ++a) n *= permuted_[a];
  }

  // x -> (dropped..., n), recorded.
  Tensor to_rows(const Tensor& x) const {
    Shape shape = dropped;
    shape.push_back(n);
    return reshape(moved_ ? permute(x, order_) : x, shape);
  }
  // (dropped..., n) -> the shape of x, recorded.
  Tensor from_rows(const Tensor& rows) const {
    Tensor y = reshape(rows, permuted_);
    if (!moved_) return y;
    std::vector<int> back(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) back[static_cast<size_t>(order_[i])] = static_cast<int>(i);
    return permute(y, back);
  }
  // The result of a reduction, of any shape with one element per row, recorded.
  Tensor result(const Tensor& y, bool keep) const { return reshape(y, keep ? kept : dropped); }

  Shape kept, dropped;  // of the result: with size 1 along the axes, and without them
  int64_t n = 1;        // elements that are reduced to one

 private:
  Shape permuted_;
  std::vector<int> order_;
  bool moved_ = false;
};

}  // namespace braid::axes
