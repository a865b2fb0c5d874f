#include "braid/autograd/detail/side_by_side.h"

namespace braid {

Tensor joined(const Tensor& a, const Tensor& b, int axis) {
  if (!a || !b || !(a.shape() == b.shape()) || a.dtype() != b.dtype() || !a.shares_storage(b)) return {};
  if (a.rank() == 0 || a.numel() == 0 || !(a.strides() == b.strides())) return {};
  Shape shape = a.shape();
  shape[axis] *= 2;
  const int64_t distance = a.dim(axis) * a.strides()[axis] * size_of(a.dtype());
  const bool adjacent = static_cast<const char*>(a.raw()) + distance == static_cast<const char*>(b.raw());
  return adjacent && a.strides() == contiguous_strides(shape) ? a.view(shape, a.strides(), 0) : Tensor();
}

std::pair<Tensor, Tensor> pair_like(const Tensor& a, const Tensor& b, int axis) {
  const Tensor both = joined(a, b, axis);
  if (!both) return {empty_like(a), empty_like(b)};
  const Tensor pair = empty_like(both);
  const int64_t half = a.dim(axis);
  return {pair.sliced(axis, 0, half), pair.sliced(axis, half, 2 * half)};
}

}  // namespace braid
