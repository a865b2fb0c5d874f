// Exercise 1: shapes, strides and offsets of views. Nothing here touches an element; numbers alone make a view.
//
// A view says where its element (i_0, ..., i_{r-1}) lies: at offset + i_0 strides[0] + ... + i_{r-1} strides[r-1],
// counted in elements from the start of the buffer.
#pragma once
#include <cstdint>
#include <vector>

#include "course/checks.h"

namespace exercise {

struct View {
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
};

// The strides of a tensor whose elements lie in row-major order: the last axis moves by 1.
inline std::vector<int64_t> row_major(const std::vector<int64_t>& shape) { throw course::NotWritten("row_major()"); }

// Where the element `index` of the view lies in the buffer.
inline int64_t position(const View& view, const std::vector<int64_t>& index) { throw course::NotWritten("position()"); }

// The view with two axes exchanged.
inline View transposed(const View& view, int axis0, int axis1) { throw course::NotWritten("transposed()"); }

// The entries begin, begin + step, ... before `end` of an axis; 0 <= begin <= end <= shape[axis], step >= 1.
inline View sliced(const View& view, int axis, int64_t begin, int64_t end, int64_t step) {
  throw course::NotWritten("sliced()");
}

// The view repeated to `shape`, as in broadcasting: an axis of size 1 may take any size, and new axes may stand in
// front.
inline View expanded(const View& view, const std::vector<int64_t>& shape) { throw course::NotWritten("expanded()"); }

// Whether the elements of the view are all different ones and lie in row-major order without gaps.
inline bool contiguous(const View& view) { throw course::NotWritten("contiguous()"); }

}  // namespace exercise
