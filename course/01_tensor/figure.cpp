// One buffer of six numbers and three views of it; the numbers in the boxes are read from Braid's tensors.
#include "braid/tensor.h"
#include "course/drawing.h"

using course::Color;

namespace {

void view(course::Drawing& out, double x, const char* name, const braid::Tensor& buffer, const braid::Tensor& values) {
  const auto rows = values.dim(0), columns = values.dim(1);
  const std::vector<double> elements = values.to_vector<double>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      out.box(x + 34.0 * static_cast<double>(j), 130 + 34.0 * static_cast<double>(i), 34, 34,
              std::to_string(static_cast<int>(elements[static_cast<size_t>(i * columns + j)])), Color::blue, 0.12);
    }
  }
  out.text(x, 118, name);
  out.text(x, 250, "shape " + std::to_string(rows) + " " + std::to_string(columns), Color::soft);
  out.text(x, 268, "strides " + std::to_string(values.strides()[0]) + " " + std::to_string(values.strides()[1]),
           Color::orange);
  out.text(x, 286, "offset " + std::to_string(values.data<int64_t>() - buffer.data<int64_t>()), Color::orange);
}

}  // namespace

int main(int argc, char** argv) {
  const braid::Tensor matrix = braid::arange(6).reshaped({2, 3});
  course::Drawing out(640, 303,
                      "One buffer of six numbers and three views of it, which differ in shape, strides and offset");
  out.text(20, 24, "the buffer");
  for (int i = 0; i < 6; ++i) out.box(20 + 34 * i, 34, 34, 34, std::to_string(i), Color::green, 0.15);
  out.text(236, 56, "views: shape, strides and offset; no element is copied", Color::soft);
  view(out, 20, "matrix", matrix, matrix);
  view(out, 190, "transposed(0, 1)", matrix, matrix.transposed(0, 1));
  view(out, 330, "sliced(1, 1, 3)", matrix, matrix.sliced(1, 1, 3));
  view(out, 470, "row 0, expanded", matrix, matrix.sliced(0, 0, 1).expanded({3, 3}));
  out.save(argc, argv);
}
