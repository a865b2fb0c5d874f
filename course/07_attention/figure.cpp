// Attention of two tokens: scores, probabilities and output to the right, the gradients below them to the left. The
// numbers are those of Braid's ops.
#include <braid/autograd.h>

#include <cmath>

#include "course/drawing.h"

using braid::Tensor;
using course::Color;

namespace {

std::string digits(double x) {
  if (std::isinf(x)) return "-\u221e";
  char out[16];
  std::snprintf(out, sizeof out, "%.2f", x == 0 ? 0 : x);
  return out;
}

// x (rows, columns) in boxes below its name; what stands in a box is darker the larger it is.
void matrix(course::Drawing& out, double x, double y, const std::string& name, const Tensor& values, Color color) {
  out.text(x, y - 8, name, color == Color::orange ? Color::orange : Color::ink);
  const int64_t columns = values.dim(1);
  const std::vector<double> elements = values.to_vector<double>();
  for (size_t i = 0; i < elements.size(); ++i) {
    const double at = static_cast<double>(i % static_cast<size_t>(columns));
    const double row = static_cast<double>(i / static_cast<size_t>(columns));
    out.box(x + 54 * at, y + 34 * row, 54, 34, digits(elements[i]), color, std::isinf(elements[i]) ? 0.02 : 0.14);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto leaf = [](std::vector<double> values) {
    Tensor x = braid::from_vector(values, {2, 1});
    return braid::require_grad(x);
  };
  const Tensor q = leaf({2, std::log(3.0)}), k = leaf({1, 0}), v = leaf({4, 8});
  const Tensor s = braid::mask_scores(matmul(q, transpose(k)), {}, -INFINITY), p = softmax(s), y = matmul(p, v);
  const std::vector<Tensor> d = grad(sum(y), {q, k, v, s, p});

  course::Drawing out(700, 300, "Attention of two tokens, forward and backward, with the numbers of the text");
  out.text(12, 22, "forward", Color::blue);
  matrix(out, 20, 56, "q", q, Color::blue);
  matrix(out, 92, 56, "k", k, Color::blue);
  out.arrow(152, 90, 212, 90, Color::blue, 1.5);
  out.text(182, 80, "q k\u1d40", Color::soft, "middle", 12);
  matrix(out, 220, 56, "scores, masked", s, Color::blue);
  out.arrow(334, 90, 394, 90, Color::blue, 1.5);
  out.text(364, 80, "softmax", Color::soft, "middle", 12);
  matrix(out, 402, 56, "probabilities p", p, Color::blue);
  matrix(out, 530, 56, "v", v, Color::blue);
  out.arrow(590, 90, 634, 90, Color::blue, 1.5);
  out.text(612, 80, "p v", Color::soft, "middle", 12);
  matrix(out, 638, 56, "y", y, Color::blue);

  matrix(out, 20, 224, "dq", d[0], Color::orange);
  matrix(out, 92, 224, "dk", d[1], Color::orange);
  out.arrow(212, 258, 152, 258, Color::orange, 1.5);
  out.text(182, 248, "ds k, ds\u1d40 q", Color::soft, "middle", 12);
  matrix(out, 220, 224, "ds", d[3], Color::orange);
  out.arrow(394, 258, 334, 258, Color::orange, 1.5);
  out.text(364, 248, "p (dp - mean)", Color::soft, "middle", 10);
  matrix(out, 402, 224, "dp = dy v\u1d40", d[4], Color::orange);
  matrix(out, 530, 224, "dv = p\u1d40 dy", d[2], Color::orange);
  out.arrow(634, 258, 590, 258, Color::orange, 1.5);
  matrix(out, 638, 224, "dy", braid::ones({2, 1}, braid::DType::f64), Color::orange);
  out.text(12, 190, "backward", Color::orange);
  out.save(argc, argv);
}
