// Which lane has which element of the operands of an mma instruction. The drawn layout is tested first: fragments that
// are filled by it give the product of two matrices of integers.
#include <stdexcept>

#include "course/11_cuda/gpu.h"
#include "course/drawing.h"

using namespace course;

namespace {

struct Element {
  int row, column;
};
// Register r of lane l: the first of its pair in a (16 x 16) and b (16 x 8), its element of c (16 x 8).
Element in_a(int l, int r) { return {l / 4 + 8 * (r % 2), 2 * (l % 4) + 8 * (r / 2)}; }
Element in_b(int l, int r) { return {2 * (l % 4) + 8 * r, l / 4}; }
Element in_c(int l, int r) { return {l / 4 + 8 * (r / 2), 2 * (l % 4) + r % 2}; }

float value_a(int i, int k) { return static_cast<float>((3 * i + 5 * k) % 7); }
float value_b(int k, int j) { return static_cast<float>((2 * k + 3 * j) % 5); }

__global__ void multiply(Global c) {
  const int lane = static_cast<int>(threadIdx.x);
  uint32_t a[4], b[2];
  for (int r = 0; r < 4; ++r) {
    const Element e = in_a(lane, r);
    a[r] = cuda::pack_bf16(value_a(e.row, e.column), value_a(e.row, e.column + 1));
  }
  for (int r = 0; r < 2; ++r) {
    const Element e = in_b(lane, r);
    b[r] = cuda::pack_bf16(value_b(e.row, e.column), value_b(e.row + 1, e.column));
  }
  float sum[4] = {};
  cuda::mma_bf16(sum, a, b[0], b[1]);
  for (int r = 0; r < 4; ++r) c[in_c(lane, r).row * 8 + in_c(lane, r).column] = sum[r];
}

void test_layout() {
  Array c("c", 128);
  cuda::launch(multiply, {.block = 32}, Global(c));
  for (int at = 0; at < 128; ++at) {
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += value_a(at / 8, k) * value_b(k, at % 8);
    if (c[static_cast<size_t>(at)] != sum) throw std::logic_error("the layout of the figure is wrong");
  }
}

constexpr double kWidth = 27, kHeight = 19;
constexpr Color kColors[] = {Color::blue, Color::orange, Color::green, Color::red};

void element(Drawing& out, double x, double y, Element e, int lane, int color, int columns, int rows) {
  out.box(x + kWidth * e.column, y + kHeight * e.row, kWidth * columns, kHeight * rows, std::to_string(lane),
          kColors[color], 0.18);
}

}  // namespace

int main(int argc, char** argv) {
  test_layout();
  Drawing out(740, 552, "Lane and register of the elements of a, b and c in an mma of 16 x 8 x 16");
  const double left = 20, right = 500, top = 70, down = 232;
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 4; ++r) element(out, left, down, in_a(lane, r), lane, r, 2, 1);
    for (int r = 0; r < 2; ++r) {
      const Element e = in_b(lane, r);
      element(out, right, top - 40, {e.row / 2, e.column}, lane, r, 1, 1);
    }
    for (int r = 0; r < 4; ++r) element(out, right, down, in_c(lane, r), lane, r, 1, 1);
  }
  out.text(right, top - 50, "b (16 x 8): a box is a pair of rows");
  out.text(left, down - 10, "a (16 x 16): a box is a pair of columns");
  out.text(right, down - 10, "c (16 x 8)");
  const char* names[] = {"a[0], b0, c[0]", "a[1], b1, c[1]", "a[2], c[2]", "a[3], c[3]"};
  out.text(left, 30, "The number is the lane, the color the register:");
  for (int r = 0; r < 4; ++r) {
    out.box(left, 44 + 26.0 * r, kWidth, kHeight, "", kColors[r], 0.18);
    out.text(left + 40, 58 + 26.0 * r, names[r]);
  }
  out.save(argc, argv);
}
