#include "braid/tensor/print.h"

#include <cstdio>
#include <ostream>

namespace braid {

namespace {

constexpr int64_t kEnds = 3;  // values shown at each end of a long axis

std::string element(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}
std::string element(int64_t x) { return std::to_string(x); }

template <class T>
void append(std::string& out, const std::vector<T>& values, const Shape& shape, int axis, int64_t start) {
  if (axis == shape.rank()) {
    out += element(values[static_cast<size_t>(start)]);
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
  if (is_float(x.dtype()))
    append(out, x.to_vector<double>(), x.shape(), 0, 0);
  else
    append(out, x.to_vector<int64_t>(), x.shape(), 0, 0);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << str(x); }
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << str(shape); }

}  // namespace braid
