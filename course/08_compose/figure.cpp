// Two heads and two tokens: scores, the matrix of each query, composed scores and probabilities, as Braid computes
// them.
#include <braid/autograd.h>

#include <cstdio>

#include "course/drawing.h"

using braid::Tensor;
using course::Color;

namespace {

// Values (2, 2) in boxes at (x, y); hidden: the upper right one is masked.
void matrix(course::Drawing& out, double x, double y, const Tensor& values, Color color, bool hidden) {
  const std::vector<double> v = values.to_vector<double>();
  for (size_t i = 0; i < 4; ++i) {
    const double strength = v[i] > 1 ? 0.1 + 0.1 * v[i] : 0.05 + 0.2 * v[i];
    char words[16];
    std::snprintf(words, sizeof words, v[i] == static_cast<int>(v[i]) ? "%.0f" : "%.2f", v[i]);
    const bool masked = hidden && i == 1;
    out.box(x + 42 * static_cast<double>(i % 2), y + 34 * static_cast<double>(i / 2), 42, 34, masked ? "" : words,
            color, masked ? 0.02 : strength);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto f64 = [](const std::vector<double>& x, const braid::Shape& shape) { return braid::from_vector(x, shape); };
  const Tensor scores = f64({2, 1, 4, 0, 3, 0, 1, 1}, {1, 2, 2, 2});
  const Tensor unit = braid::eye(2, braid::DType::f64);
  const Tensor keys = contiguous(expand(reshape(unit, {1, 2, 1, 2}), {1, 2, 2, 2}));
  braid::HeadMixing pre;
  pre.q_down = f64({1, 0, 1, 0}, {1, 2, 1, 1, 2}), pre.q_up = f64({0, 0, 0, 0.5}, {1, 2, 1, 1, 2});
  braid::DcmhaOptions options;
  options.scale = 1;
  const braid::AttentionMaps maps = attention_maps(transpose(scores, 1, 2), keys, pre, {}, options);
  const auto map = [](const Tensor& x, int64_t head) { return index(x, {0, head}); };
  const auto mixing = [&](int64_t query) {
    return unit + matmul(transpose(index(pre.q_down, {0, query, 0})), index(pre.q_up, {0, query, 0}));
  };

  course::Drawing out(640, 300, "Scores of two heads, composed by a matrix that depends on the query");
  const char* columns[] = {"scores", "mixing matrices", "composed", "shares"};
  const double x[] = {70, 225, 390, 530};
  for (int i = 0; i < 4; ++i) out.text(x[i], 24, columns[i]);
  for (int64_t head = 0; head < 2; ++head) {
    const double y = 70 + 120 * static_cast<double>(head);
    out.text(12, y + 38, "head " + std::to_string(head));
    matrix(out, x[0], y, map(maps.scores, head), Color::blue, true);
    matrix(out, x[1] + 12, y, mixing(head), Color::green, false);
    out.text(x[1] + 12, y - 8, "W of query " + std::to_string(head), Color::green, "start", 12);
    matrix(out, x[2], y, map(maps.scores_composed, head), Color::blue, true);
    matrix(out, x[3], y, map(maps.probs, head), Color::orange, true);
  }
  for (const double left : {170.0, 334.0}) out.arrow(left, 164, left + 42, 164, Color::ink, 1.5);
  out.arrow(482, 164, 522, 164, Color::ink, 1.5);
  out.text(502, 154, "softmax", Color::soft, "middle", 11);
  out.text(12, 286, "row: query, column: key", Color::soft, "start", 12);
  out.text(x[1] + 12, 286, "row: read, column: written", Color::soft, "start", 12);
  out.save(argc, argv);
}
