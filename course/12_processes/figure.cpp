// Heads x rows on two ranks: before, each has two heads of all rows; after, three rows of all heads. The numbers, 10 n
// + t for head n and row t, come out of Braid's all_to_all.
#include "braid/autograd/ops.h"
#include "braid/distributed/comm/thread_transport.h"
#include "course/drawing.h"

using namespace braid;
using course::Color;

namespace {

constexpr double kCell = 34;

void grid(course::Drawing& out, double x, double y, const Tensor& values, int first_head, int first_row) {
  const auto rows = values.dim(0), heads = values.dim(1);
  const std::vector<double> elements = values.to_vector<double>();
  for (int64_t t = 0; t < rows; ++t) {
    out.text(x - 6, y + kCell * (static_cast<double>(t) + 0.6), "t" + std::to_string(first_row + t), Color::soft,
             "end");
    for (int64_t n = 0; n < heads; ++n) {
      const int value = static_cast<int>(elements[static_cast<size_t>(t * heads + n)]);
      // The color is the rank that had the element before.
      out.box(x + kCell * static_cast<double>(n), y + kCell * static_cast<double>(t), kCell, kCell,
              std::to_string(value), value < 20 ? Color::blue : Color::orange, 0.15);
    }
  }
  for (int64_t n = 0; n < heads; ++n)
    out.text(x + kCell * (static_cast<double>(n) + 0.5), y - 6, "h" + std::to_string(first_head + n), Color::soft,
             "middle");
}

std::string shape_of(const char* name, const Tensor& x) {
  return std::string(name) + " = (" + std::to_string(x.dim(0)) + ", " + std::to_string(x.dim(1)) + ", d)";
}

}  // namespace

int main(int argc, char** argv) {
  Tensor before[2], after[2];
  dist::run_thread_ranks(2, [&](const dist::Communicator& comm) {
    const int rank = comm.rank();
    const Tensor heads = reshape(arange(2, DType::f64), {1, 2}) * 10.0 + 20.0 * rank;
    before[rank] = heads + reshape(arange(6, DType::f64), {6, 1});
    after[rank] = comm.all_to_all(before[rank], 0, dist::even_partition(6, 2), 1, dist::even_partition(4, 2));
  });
  course::Drawing out(600, 360, "all_to_all on two ranks: from two heads of six rows to four heads of three rows");
  for (int rank = 0; rank < 2; ++rank) {
    const Color color = rank == 0 ? Color::blue : Color::orange;
    const double left = 50 + 130.0 * rank, top = 60 + 156.0 * rank;
    out.text(left, 24, "rank " + std::to_string(rank), color);
    grid(out, left, 60, before[rank], 2 * rank, 0);
    out.text(410, top - 28, "rank " + std::to_string(rank), color);
    grid(out, 410, top, after[rank], 0, 3 * rank);
    out.arrow(270, 150 + 30.0 * rank, 370, top + 50);
  }
  out.text(310, 96, "all_to_all", Color::ink, "middle");
  out.text(50, 300, shape_of("own heads, all rows: (T, N/P, d)", before[0]), Color::soft);
  out.text(50, 345, shape_of("all heads, own rows: (T/P, N, d)", after[0]), Color::soft);
  out.save(argc, argv);
}
