#include "braid/tensor/print.h"

#include <cstdio>
#include <ostream>

namespace braid {

namespace {

constexpr int64_t kEnds = 3;  // values shown at each end of a long axis

void append(std::string& out, const std::vector<double>& values, const Shape& shape, int axis, int64_t start) {
  if (axis == shape.rank()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", values[static_cast<size_t>(start)]);
    out += text;
    return;
  }
  int64_t step = 1, n = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) step *= shape[i];
  out += '[';
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out += ", ";
    if (n > 2 * kEnds && i == kEnds) {
      out += "..., ";
      i = n - kEnds;
    }
    append(out, values, shape, axis + 1, start + i * step);
  }
  out += ']';
}

}  // namespace

std::string str(const Tensor& x) {
  if (!x) return "(empty handle)";
  std::string out = str(x.dtype()) + " " + str(x.shape()) + " on " + str(x.device()) + " ";
  append(out, x.to_vector<double>(), x.shape(), 0, 0);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << str(x); }
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << str(shape); }

}  // namespace braid
