#include "braid/tensor/print.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

namespace braid {

namespace {

// x without the middle of its long axes, the longest one first, so that little is copied.
Tensor edges_of(Tensor x, int64_t edge) {
  for (;;) {
    const int a = static_cast<int>(std::max_element(x.shape().begin(), x.shape().end()) - x.shape().begin());
    if (x.rank() == 0 || (x.dim(a) - 1) / 2 < edge) return x;
    Shape shape = x.shape();
    shape[a] = 2 * edge;
    Tensor y = empty(shape, x.dtype(), x.device());
    y.sliced(a, 0, edge).copy_(x.sliced(a, 0, edge));
    y.sliced(a, edge, 2 * edge).copy_(x.sliced(a, x.dim(a) - edge, x.dim(a)));
    x = y;
  }
}

std::vector<std::string> elements(const Tensor& x, int digits) {
  std::vector<std::string> cells;
  char text[64];
  if (is_float(x.dtype())) {
    for (double v : x.to_vector<double>()) {
      std::snprintf(text, sizeof text, "%.*g", digits, v);
      cells.push_back(text);
    }
  } else {
    for (int64_t v : x.to_vector<int64_t>()) cells.push_back(std::to_string(v));
  }
  return cells;
}

struct Layout {
  Shape full, shown;
  std::vector<std::string> cells;
  const PrintOptions& options;
  size_t next = 0;  // cell
  std::string out;

  void append(int axis) {
    if (axis == shown.rank()) {
      out += cells[next++];
      return;
    }
    out += '[';
    for (int64_t i = 0; i < shown[axis]; ++i) {
      if (i > 0) separate(axis, cells[next].size());
      if (i == options.edge && shown[axis] < full[axis]) {
        out += "...";
        separate(axis, cells[next].size());
      }
      append(axis + 1);
    }
    out += ']';
  }

 private:
  void separate(int axis, size_t upcoming) {
    const int rank = shown.rank(), last = rank - 1;
    const size_t line = out.size() - (out.rfind('\n') + 1);  // npos + 1 is 0
    out += ',';
    if (axis < last || line + 2 + upcoming >= static_cast<size_t>(options.width)) {
      out.append(static_cast<size_t>(std::max(last - axis, 1)), '\n');
      out.append(static_cast<size_t>(axis) + 1, ' ');
    } else {
      out += ' ';
    }
  }
};

}  // namespace

std::string str(const Tensor& x, const PrintOptions& options) {
  if (!x) return "(empty handle)";
  check(options.edge >= 1 && options.digits >= 1 && options.digits <= 17, "str", [&] {
    return str("needs at least one element at each edge and 1 to 17 digits, got ", options.edge, " and ",
               options.digits);
  });
  const std::string head = str(x.dtype(), " ", x.shape(), " on ", x.device());
  if (x.numel() == 0) return head + " []";
  const Tensor shown = edges_of(x.detach(), options.edge);
  Layout layout{x.shape(), shown.shape(), elements(shown, options.digits), options, 0, {}};
  size_t widest = 0, all = head.size();
  for (const std::string& cell : layout.cells) {
    widest = std::max(widest, cell.size());
    all += cell.size() + 2;
  }
  const bool one_line = x.rank() <= 1 && all < static_cast<size_t>(options.width);
  if (!one_line) {
    for (std::string& cell : layout.cells) cell.insert(0, widest - cell.size(), ' ');
  }
  layout.append(0);
  return head + (one_line ? " " : "\n") + layout.out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << str(x); }
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << str(shape); }

}  // namespace braid
