// Two blocks of a row, their running maximum and sum, and what merging the blocks gives: computed here.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "course/drawing.h"

using course::Color;

namespace {

std::string number(double value, const char* form = "%.3f") {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

struct Part {
  double max = -1e300, sum = 0;
};

Part merge(const Part& a, const Part& b) {
  const double max = std::max(a.max, b.max);
  return {max, a.sum * std::exp(a.max - max) + b.sum * std::exp(b.max - max)};
}

// A block with its running part under every entry.
Part block(course::Drawing& out, double x, const double* values, Color color) {
  Part part;
  for (int i = 0; i < 4; ++i, x += 68) {
    part = merge(part, {values[i], 1});
    out.box(x, 40, 68, 34, number(values[i], "%g"), color, 0.15);
    out.text(x + 34, 102, number(part.max, "%g"), Color::ink, "middle");
    out.text(x + 34, 126, number(part.sum), Color::ink, "middle");
  }
  return part;
}

std::string str(const Part& part) { return "max " + number(part.max, "%g") + ", sum " + number(part.sum); }

}  // namespace

int main(int argc, char** argv) {
  const double row[] = {1, 3, 2, 0, 2, 1, 4, 3};
  course::Drawing out(720, 240, "Two blocks of a row with their running maximum and sum, and the part of both");
  out.text(150, 26, "block 0", Color::blue);
  out.text(430, 26, "block 1", Color::orange);
  out.text(20, 61, "x");
  out.text(20, 102, "running max");
  out.text(20, 126, "running sum");
  const Part a = block(out, 150, row, Color::blue), b = block(out, 430, row + 4, Color::orange);
  out.box(186, 144, 200, 30, str(a), Color::blue, 0.15);
  out.box(466, 144, 200, 30, str(b), Color::orange, 0.15);
  out.arrow(286, 174, 400, 200);
  out.arrow(566, 174, 452, 200);
  out.box(326, 200, 200, 30, str(merge(a, b)), Color::green, 0.15);
  out.text(20, 220, "merged: scaled to the larger max", Color::soft);
  out.save(argc, argv);
}
