// Kernels that should run at the speed of memory: optimiser, norms, SwiGLU, cross-entropy, beside a copy on as many
// threads. GB/s count each array once per time that its values must be read or written (f32), however an op gets there.
// Usage: bench_memory [threads=1] [repeat=5] [rows=16384] [width=1024]      prints one JSON object per line
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/update_rules.h"
#include "braid/tensor/parallel.h"

using namespace braid;

namespace {

std::map<std::string, std::string> settings = {{"threads", "1"}, {"repeat", "5"}, {"rows", "16384"}, {"width", "1024"}};

int64_t number(const char* name) { return std::stoll(settings.at(name)); }

template <class Work>
double best_of(int64_t repeat, Work&& work) {
  double best = 1e300;
  for (int64_t i = 0; i <= repeat; ++i) {  // the first one warms up
    auto start = std::chrono::steady_clock::now();
    work();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0) best = std::min(best, seconds);
  }
  return best;
}

uint64_t stream = 0;
Tensor random(const Shape& shape) { return randn(shape, {7, ++stream}); }

double copy_rate = 0;

// bytes: per value of a [rows, width] array
template <class Work>
void measure(const char* name, double bytes, Work&& work) {
  const double values = double(number("rows")) * double(number("width"));
  const double seconds = best_of(number("repeat"), work), rate = bytes * values / seconds * 1e-9;
  if (copy_rate == 0) copy_rate = rate;
  std::printf("{\"what\": \"%s\", \"threads\": %d, \"ms\": %.2f, \"gb_per_s\": %.1f, \"of_copy\": %.2f}\n", name,
              threads(), seconds * 1e3, rate, rate / copy_rate);
}

// Forward alone, then forward and backward of y = op(inputs...).
template <class Op>
void measure_op(const std::string& name, double forward, double both, std::vector<Tensor> inputs, Op&& op) {
  measure((name + " forward").c_str(), forward, [&] {
    NoGrad off;
    op(inputs);
  });
  for (Tensor& x : inputs) require_grad(x);
  Tensor dy;
  measure((name + " both").c_str(), both, [&] {
    Tensor y = op(inputs);
    if (!dy) dy = full(y.shape(), 1);
    backward(y, dy);
    for (Tensor& x : inputs) zero_grad(x);
  });
}

// One update of parameters cut into pieces of `size` values.
void measure_adamw(const char* name, int64_t values, int64_t size) {
  UpdateStep step{{}, {0.9, 0.95, 1e-8, 0}, from_values({1e-3, 1, 10, 20}, {4}, DType::f64)};
  for (int64_t i = 0; i < values / size; ++i) {
    step.items.push_back({random({size}), random({size}), {zeros({size}), zeros({size})}, 0.1});
  }
  measure(name, 28, [&] { backend(kCpu).optimizer.update(UpdateRule::adamw, step); });
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::read_arguments(argc, argv, settings)) return 2;
  set_threads(static_cast<int>(number("threads")));
  const int64_t rows = number("rows"), width = number("width");
  const Shape shape{rows, width};
  Tensor from = random(shape), to = empty(shape);
  measure("copy", 8, [&] { to.copy_(from); });
  measure_adamw("adamw, one tensor", rows * width, rows * width);
  measure_adamw("adamw, tensors of 65536", rows * width, 65536);
  measure_adamw("adamw, tensors of 1024", rows * width, 1024);
  measure_op("rms_norm", 8, 20, {random(shape), random({width})},
             [](const std::vector<Tensor>& x) { return rms_norm(x[0], x[1], 1e-6); });
  measure_op("add, then rms_norm", 20, 32, {random(shape), random(shape), random({width})},
             [](const std::vector<Tensor>& x) { return rms_norm(add(x[0], x[1]), x[2], 1e-6); });
  // As in a block: the sum is normed, and is needed itself too.
  const std::vector<Tensor> block{random(shape), random(shape), random({width})};
  measure_op("add, rms_norm, add", 32, 56, block, [](const std::vector<Tensor>& x) {
    Tensor h = add(x[0], x[1]);
    return add(h, rms_norm(h, x[2], 1e-6));
  });
  measure_op("add_rms_norm, add", 28, 40, block, [](const std::vector<Tensor>& x) {
    SumAndNorm h = add_rms_norm(x[0], x[1], x[2], 1e-6);
    return add(h.sum, h.y);
  });
  measure_op("swiglu", 12, 32, {random(shape), random(shape)},
             [](const std::vector<Tensor>& x) { return swiglu(x[0], x[1]); });
  Tensor targets = zeros({rows}, DType::i64);
  measure_op("cross_entropy", 4, 12, {random(shape)},
             [&](const std::vector<Tensor>& x) { return cross_entropy(x[0], targets); });
  return 0;
}
