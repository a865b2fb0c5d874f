// Bytes and instructions of the three kernels of exercise.h for one product, as the emulated GPU counts them.
#include "11_cuda/exercise.h"
#include "course/drawing.h"

using namespace course;

namespace {

struct Cost {
  double bytes, instructions;  // for one multiplication; instructions of a thread
};

Cost cost_of(void (*product)(Global, Global, Global, Sizes), double threads_of_block) {
  const Sizes z{64, 64, 64};
  Array a("a", std::vector<float>(64 * 64, 1)), b("b", std::vector<float>(64 * 64, 1)), c("c", 64 * 64);
  const braid::emulated::Statistics before = braid::emulated::statistics();
  const Counters shared = shared_memory();
  product(a, b, c, z);
  const braid::emulated::Statistics& after = braid::emulated::statistics();
  if (c[0] != 64) throw std::logic_error("a product of ones by a sum of 64: expected 64");
  const auto accesses = [](const Counters& of) { return static_cast<double>(of.reads + of.writes); };
  const double instructions = accesses(a.counters()) + accesses(b.counters()) + accesses(c.counters()) +
                              accesses(shared_memory()) - accesses(shared) +
                              threads_of_block * static_cast<double>(after.barriers - before.barriers) +
                              32 * static_cast<double>(after.mma - before.mma);
  const double all = 64.0 * 64 * 64, read = static_cast<double>(a.counters().reads + b.counters().reads);
  return {4 * read / all, instructions / all};
}

}  // namespace

int main(int argc, char** argv) {
  const Cost costs[] = {cost_of(exercise::naive, 256), cost_of(exercise::tiled, 256),
                        cost_of(exercise::tensor_cores, 32)};
  const char* names[] = {"naive", "tiled, 16 x 16", "tensor cores"};
  Drawing out(700, 236, "Bytes read and instructions of the three kernels for one multiplication");
  out.text(150, 24, "bytes read from the GPU's memory", Color::blue);
  out.text(400, 24, "reads, writes, barriers and mma of a thread", Color::orange);
  const auto bar = [&](double y, double value, Color color) {
    char number[16];
    std::snprintf(number, sizeof number, "%.3g", value);
    out.box(150, y, 55 * value, 20, "", color, 0.3);
    out.text(158 + 55 * value, y + 15, number, color);
  };
  for (int rung = 0; rung < 3; ++rung) {
    const double y = 44 + 62.0 * rung;
    out.text(138, y + 26, names[rung], Color::ink, "end");
    bar(y, costs[rung].bytes, Color::blue);
    bar(y + 22, costs[rung].instructions, Color::orange);
  }
  out.text(150, 228, "for one multiplication of a product of 64 x 64 matrices", Color::soft, "start", 12);
  out.save(argc, argv);
}
