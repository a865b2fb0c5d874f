// The maps of all heads of the example's model for one sequence, after Compose, and the loss without each head.
#include "course/09_heads/trained.h"

#include <cmath>
#include <cstdio>

#include "course/drawing.h"

using course::Color;

int main(int argc, char** argv) {
  const course::Recaller trained;
  const double loss = trained.loss(), cell = 6;
  course::Drawing out(640, 370, "What multiplies the values in the eight heads, and the loss without each head");
  for (int layer = 0; layer < 2; ++layer) {
    const braid::Tensor maps = trained.map(layer, "attn_probs_composed");
    const braid::Tensor wo = trained.parameter("layers." + std::to_string(layer) + ".attention.wo.weight");
    const double y = 45 + 165.0 * layer;
    out.text(12, y + 64, "layer " + std::to_string(layer));
    for (int64_t head = 0; head < 4; ++head) {
      braid::Tensor columns = wo.sliced(1, 8 * head, 8 * head + 8);
      const braid::Tensor kept = columns.clone();
      columns.fill(0);
      char words[64];
      std::snprintf(words, sizeof words, "head %d: %+.2f", static_cast<int>(head), trained.loss() - loss);
      columns.copy_(kept);
      const double x = 80 + 140.0 * static_cast<double>(head);
      out.text(x, y - 8, words);
      out.box(x, y, cell * 20, cell * 20, "", Color::soft);
      const std::vector<double> values = index(maps, {head}).to_vector<double>();
      for (size_t i = 0; i < values.size(); ++i) {
        const double strength = std::fmin(1, std::floor(5 * std::fabs(values[i])) / 5);
        if (strength == 0) continue;  // below 0.2
        out.box(x + cell * static_cast<double>(i % 20), y + cell * static_cast<double>(i / 20), cell, cell, "",
                values[i] > 0 ? Color::blue : Color::orange, strength);
      }
    }
  }
  out.text(80, 356, "row: query, column: key; blue: positive, orange: negative, from 0.2 to 1 and more", Color::soft);
  out.save(argc, argv);
}
