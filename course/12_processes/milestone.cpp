// Milestone 12: a network trained on two ranks by your collectives, beside the same training in one process. The ranks
// are threads; under mpirun -np 2 they are processes.
#include <braid/autograd/math.h>
#include <braid/autograd/ops.h>
#include <braid/distributed/comm/mpi_session.h>

#include <cstdio>

#include "12_processes/exercise.h"
#include "course/12_processes/ranks.h"
#include "course/curves.h"
using namespace braid;
using dist::Communicator;

namespace {

constexpr int kSteps = 100;
constexpr int64_t kSamples = 64;

// The losses of training tanh(x w0) w1 on sin(3 x0) + x1, on the ranks of comm. The last rank has fewer samples.
std::vector<double> train(const Communicator& comm) {
  const Tensor x = rand({kSamples, 2}, {.seed = 1}, DType::f64) * 2.0 - 1.0;
  const Tensor y = braid::sin(x.sliced(1, 0, 1) * 3.0) + x.sliced(1, 1, 2);
  const int64_t share = 40, begin = comm.rank() * share,
                end = comm.rank() + 1 == comm.size() ? kSamples : begin + share;
  const Tensor own_x = x.sliced(0, begin, end), own_y = y.sliced(0, begin, end);
  std::vector<Tensor> w{randn({2, 16}, {.seed = 2}, DType::f64), randn({16, 1}, {.seed = 3}, DType::f64) * 0.3};
  for (Tensor& weight : w) require_grad(weight);
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor loss = mse_loss(matmul(tanh(matmul(own_x, w[0])), w[1]), own_y);
    backward(loss);
    std::vector<Tensor> means{grad(w[0]).clone(), grad(w[1]).clone(), reshape(loss.detach(), {1})};
    if (comm.size() > 1) exercise::mean_gradients(comm, means, end - begin);
    losses.push_back(means[2].item());
    for (size_t i = 0; i < w.size(); ++i) {
      w[i].add_(means[i] * -0.3);
      zero_grad(w[i]);
    }
  }
  return losses;
}

int report(const std::vector<double>& own, int argc, char** argv) {
  const std::vector<double> one = train(Communicator());
  course::Curves curves(argc, argv, "two ranks", "one process", 20);
  for (size_t i = 0; i < one.size(); ++i) curves.add(static_cast<int>(i) + 1, own[i], one[i]);
  std::printf("the losses differ by at most %.1e\n", curves.apart());
  return curves.apart() < 1e-12 && curves.last() < curves.first() / 2 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<double> losses;
  if (dist::launched_by_mpi()) {
    const dist::MpiSession session;
    losses = train(session.world());
    return session.world().rank() == 0 ? report(losses, argc, argv) : 0;
  }
  course::run_ranks(2, [&](const Communicator& comm) {
    const std::vector<double> mine = train(comm);
    if (comm.rank() == 0) losses = mine;
  });
  return report(losses, argc, argv);
}
