// A solution of exercise 1.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "course/checks.h"

namespace exercise {

struct View {
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
};

inline std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0;) strides[axis] = step, step *= shape[axis];
  return strides;
}

inline int64_t position(const View& view, const std::vector<int64_t>& index) {
  int64_t at = view.offset;
  for (size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * view.strides[axis];
  return at;
}

inline View transposed(const View& view, int axis0, int axis1) {
  View out = view;
  std::swap(out.shape[axis0], out.shape[axis1]);
  std::swap(out.strides[axis0], out.strides[axis1]);
  return out;
}

inline View sliced(const View& view, int axis, int64_t begin, int64_t end, int64_t step) {
  View out = view;
  out.shape[axis] = (end - begin + step - 1) / step;
  out.strides[axis] *= step;
  out.offset += begin * view.strides[axis];
  return out;
}

inline View expanded(const View& view, const std::vector<int64_t>& shape) {
  View out{shape, std::vector<int64_t>(shape.size(), 0), view.offset};
  const size_t added = shape.size() - view.shape.size();
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == shape[added + axis]) out.strides[added + axis] = view.strides[axis];
  }
  return out;
}

inline bool contiguous(const View& view) {
  int64_t step = 1;
  for (size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != step) return false;
    step *= view.shape[axis];
  }
  return true;
}

}  // namespace exercise
