// Elements by position, as NumPy indexes: readable, differentiable, for every type.
//
//   index(x, {0, Slice{2, 5}})                     x[0, 2:5]
//   index(x, {ellipsis, Slice{.step = -1}})        x[..., ::-1]
//   index(x, {gt(x, 0.0)})                         x[x > 0]
//   index(x, {ids, Slice{}, newaxis})              x[ids, :, None]
//   x = index_put(x, {Slice{0, 2}}, full({}, 7))   x[0:2] = 7, as a new tensor
//
// Indices may be negative: -1 is the last. Ids (i64 or i32) and masks (u8) are read by the host, which checks them; of
// a GPU's tensor it waits for them. Sums over equal positions have the order of the ids.
#pragma once
#include <concepts>
#include <optional>
#include <variant>
#include <vector>

#include "braid/autograd/ops.h"

namespace braid {

// begin:end:step of Python; what is left out is the end that the sign of the step asks for. Bounds outside are cut.
struct Slice {
  std::optional<int64_t> begin = {}, end = {};
  int64_t step = 1;
};
struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis;  // as many whole axes as are missing
inline constexpr NewAxis newaxis;    // a new axis of size 1

// One entry of an index: a position (the axis is removed), a slice, ellipsis, newaxis, ids, or a mask of the next axes.
class Index {
 public:
  template <std::integral I>
  Index(I position) : value(static_cast<int64_t>(position)) {}
  Index(Slice slice) : value(slice) {}
  Index(Ellipsis all) : value(all) {}
  Index(NewAxis axis) : value(axis) {}
  Index(Tensor ids_or_mask) : value(std::move(ids_or_mask)) {}

  std::variant<int64_t, Slice, Ellipsis, NewAxis, Tensor> value;
};

// The elements. Without ids and masks a view where steps are 1. Ids of several axes broadcast, positions beside them
// count as ids; their axes stand in the place of the first where they are neighbours, else in front. An ellipsis of no
// axis between them does not part them, as it does in NumPy.
Tensor index(const Tensor& x, const std::vector<Index>& at);
// x with these elements replaced by values, which broadcast; of equal positions the last one counts.
Tensor index_put(const Tensor& x, const std::vector<Index>& at, const Tensor& values);
// x with values added there; equal positions add up. Floats.
Tensor index_add(const Tensor& x, const std::vector<Index>& at, const Tensor& values);

// Entries of an axis: x (..., n, ...), ids (k) -> (..., k, ...).
Tensor index_select(const Tensor& x, const Tensor& ids, int axis);
// One id per element: y[.., i, ..] = x[.., ids[.., i, ..], ..] along the axis; the other axes broadcast.
Tensor take_along_axis(const Tensor& x, const Tensor& ids, int axis);
Tensor gather(const Tensor& x, const Tensor& ids, int axis);  // the same
// x with y[.., ids[.., i, ..], ..] = values[.., i, ..]; ids have the sizes of x but along the axis, values broadcast.
Tensor scatter(const Tensor& x, const Tensor& ids, const Tensor& values, int axis);
Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& values, int axis);
Tensor take(const Tensor& x, const Tensor& ids);  // of x with all axes as one: the shape of ids

Tensor nonzero(const Tensor& x);                            // positions of what is not 0, in order: (n, rank) i64
Tensor masked_select(const Tensor& x, const Tensor& mask);  // (n): elements where the mask, which broadcasts, is not 0
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& values);  // x, there the first n of values

}  // namespace braid
