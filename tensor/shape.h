// Shape and Strides: up to eight sizes in a trivially copyable value, so that kernels take them by value.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "braid/tensor/error.h"

namespace braid {

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) {
    for (int64_t n : sizes) push_back(n);
  }

  int rank() const { return rank_; }
  // Negative axes count from the end. Throws when the axis does not exist.
  int64_t operator[](int axis) const { return size_[index(axis)]; }
  int64_t& operator[](int axis) { return size_[index(axis)]; }
  void push_back(int64_t n) {
    if (rank_ == max_rank) [[unlikely]]
      too_many(n);
    size_[rank_++] = n;
  }
  const int64_t* begin() const { return size_; }
  const int64_t* end() const { return size_ + rank_; }
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.size_[i] != b.size_[i]) return false;
    }
    return true;
  }

 private:
  int index(int axis) const {
    int i = axis < 0 ? axis + rank_ : axis;
    if (i < 0 || i >= rank_) [[unlikely]]
      bad_axis(axis);
    return i;
  }
  [[noreturn]] void bad_axis(int axis) const;
  [[noreturn]] void too_many(int64_t n) const;

  int64_t size_[max_rank] = {};
  int rank_ = 0;
};

// Axes as an argument: {0, -1}, or a vector, an array or a span of int. A view that owns nothing: for parameters only.
struct Axes : std::span<const int> {
  Axes(std::initializer_list<int> axes) : span(axes.begin(), axes.size()) {}
  template <std::convertible_to<std::span<const int>> List>
  Axes(const List& axes) : span(axes) {}
};

// Strides are counted in elements, not bytes; 0 repeats an element (broadcast), negative ones come from view() alone.
using Strides = Shape;

std::string str(const Shape& shape);  // "(2, 3, 4)"
int64_t numel(const Shape& shape);    // product of the sizes; throws when it overflows or a size is negative
Strides contiguous_strides(const Shape& shape);
int normal_axis(int axis, int rank, const char* op);              // -1 -> rank-1; throws "[op] axis 3 ..."
Shape broadcast(const Shape& a, const Shape& b, const char* op);  // NumPy rules; throws naming both shapes
// Strides that make data of `shape` look like `to` (stride 0 along repeated axes). `shape` must broadcast to `to`.
Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& to, const char* op);

}  // namespace braid
