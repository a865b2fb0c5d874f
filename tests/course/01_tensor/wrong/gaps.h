// expect: \(2, 2, 4\) with strides \(12, 4, 1\): expected not contiguous
#pragma once
#define contiguous contiguous_right
#include "../exercise.h"
#undef contiguous

namespace exercise {

inline bool contiguous(const View& view) {  // strides that fall to 1, whatever the sizes
  for (size_t axis = 1; axis < view.shape.size(); ++axis) {
    if (view.strides[axis] > view.strides[axis - 1]) return false;
  }
  return view.strides.back() == 1;
}

}  // namespace exercise
