// Three ranks add their numbers, then two ranks exchange heads for rows. The ranks are threads of this program.
#include <braid/autograd/ops.h>
#include <braid/distributed/comm/thread_transport.h>

#include <cstdio>
using namespace braid;
using dist::Communicator;

namespace {

std::string numbers(const Tensor& x) {
  std::string out;
  for (const double value : x.to_vector<double>()) out += str(" ", static_cast<int64_t>(value));
  return out;
}

// A line of each rank, printed by rank 0 in their order.
void show(const Communicator& comm, const std::string& line) {
  const std::vector<std::string> all = comm.gather_text(line);
  for (size_t r = 0; r < all.size() && comm.rank() == 0; ++r) std::printf("rank %zu%s\n", r, all[r].c_str());
}

void add_numbers(const Communicator& comm) {
  const double scale[] = {1, 10, 100};
  const Tensor x = from_values({1, 2, 3}, {3}, DType::f64) * scale[comm.rank()];
  const Tensor sum = comm.all_reduce(x);
  const int64_t sent = comm.stats().bytes_of(dist::Collective::all_reduce);
  show(comm, str(": has", numbers(x), ", gets", numbers(sum), ", sent ", sent, " bytes"));
}

void exchange_heads(const Communicator& comm) {
  // Element (row t, head n) is 10 n + t; this rank has two of four heads.
  const dist::Partition rows = dist::even_partition(6, 2), heads = dist::even_partition(4, 2);
  const Tensor first = reshape(arange(2, DType::f64), {1, 2}) * 10.0 + 20.0 * comm.rank();
  const Tensor x = first + reshape(arange(6, DType::f64), {6, 1});  // (T, N/P)
  const Tensor y = comm.all_to_all(x, 0, rows, 1, heads);           // (T/P, N)
  show(comm, str(" before: ", x.shape(), numbers(x)));
  show(comm, str(" after:  ", y.shape(), numbers(y)));
}

}  // namespace

int main() {
  dist::run_thread_ranks(3, add_numbers);
  dist::run_thread_ranks(2, exchange_heads);
}
