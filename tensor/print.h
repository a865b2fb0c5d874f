// A tensor as text: type, shape, device and a preview of its elements.
#pragma once
#include <iosfwd>
#include <string>

#include "braid/tensor/tensor.h"

namespace braid {

std::string str(const Tensor& x);  // "f32 (2, 3) on cpu [[0.5, 1, 2], ...]"; of a long axis three elements at each end
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Shape& shape);  // (2, 3, 4)

}  // namespace braid
