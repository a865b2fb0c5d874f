// Left: the scores of causal attention, in blocks of keys, of which one exists at a time. Right: the measured peaks of
// Braid's attention with all scores and in blocks.
#include <cstdio>

#include "braid/autograd/ops.h"
#include "braid/tensor/memory.h"
#include "course/drawing.h"

using namespace braid;
using course::Color;

namespace {

double peak_of(AttentionImpl impl, int64_t t) {  // MiB, of the result and all temporaries
  const Tensor q = randn({1, t, 4, 32}, {10, 0});
  reset_peak_memory(kCpu);
  const int64_t before = memory_by_use(kCpu).peak();
  scaled_dot_product_attention(q, q, q, {.impl = impl});
  return static_cast<double>(memory_by_use(kCpu).peak() - before) / (1 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  course::Drawing out(720, 300, "Scores in blocks of keys with a running maximum, sum and result, and measured peaks");
  out.text(20, 24, "scores: 8 queries, 8 keys, blocks of 2 keys");
  for (int t = 0; t < 8; ++t) {
    for (int s = 0; s < 8; ++s) {
      const bool present = s / 2 == 2, seen = s <= t;
      out.box(90 + 26 * s, 44 + 26 * t, 26, 26, "", present ? Color::orange : Color::soft,
              !seen     ? 0
              : present ? 0.35
                        : 0.1);
    }
  }
  out.text(20, 152, "queries", Color::soft);
  out.text(90, 270, "done", Color::soft);
  out.text(186, 270, "now", Color::orange);
  out.text(250, 270, "later", Color::soft);
  out.arrow(130, 266, 180, 266, Color::soft);
  out.arrow(220, 266, 244, 266, Color::soft);
  out.text(20, 292, "kept of each query: max, sum, out of the keys so far", Color::green);

  out.text(370, 24, "peak of one call in MiB, 4 heads of size 32");
  const double full = peak_of(AttentionImpl::reference, 1024);
  double y = 48;
  for (const int64_t t : {256, 512, 1024}) {
    out.text(370, y + 22, "T = " + std::to_string(t));
    for (const AttentionImpl impl : {AttentionImpl::reference, AttentionImpl::chunked}) {
      const bool whole = impl == AttentionImpl::reference;
      const double peak = peak_of(impl, t);
      char text[32];
      std::snprintf(text, sizeof text, "%.1f", peak);
      out.box(440, y, 220 * peak / full, 18, "", whole ? Color::red : Color::orange, 0.4);
      out.text(446 + 220 * peak / full, y + 14, text, Color::soft);
      y += 24;
    }
    y += 22;
  }
  out.text(440, 270, "all scores", Color::red);
  out.text(540, 270, "in blocks", Color::orange);
  out.save(argc, argv);
}
