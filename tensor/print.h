// A tensor as text: type, shape, device and a preview of its elements.
#pragma once
#include <iosfwd>
#include <string>

#include "braid/tensor/tensor.h"

namespace braid {

struct PrintOptions {
  int64_t edge = 3;  // elements shown at each end of an axis that has more than twice as many; at least 1
  int digits = 6;    // significant digits of floating-point values, 1 to 17
  int width = 100;   // characters after which a row continues on the next line
};

// One row of the last axis per line, columns aligned, a blank line between matrices; a vector stays beside its type:
//   i64 (3) on cpu [0, 1, 2]
//   f32 (2, 3) on cpu
//   [[0.5,   1,   2],
//    [ -1, 0.1,   0]]
// Copies only the shown elements from the device.
std::string str(const Tensor& x, const PrintOptions& options = {});
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Shape& shape);  // (2, 3, 4)

}  // namespace braid
