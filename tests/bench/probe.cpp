// The parts of predictions of a GPU's time: bandwidth, the rate of products, the cost of a node of a graph and of a
// launch, products in several calls and in one, and the time per score of each attention kernel (on the dry device:
// launches and bytes of attention).
// Usage: bench_probe [device=cuda:0|cpu|dry] [size=full|tiny] [repeat=5]     prints one JSON object a row
// A row that the device cannot give (graphs and single kernels on the CPU) is printed with a reason.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/dry/dry_device.h"
#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/backend.h"

using namespace braid;

namespace {

std::map<std::string, std::string> settings = {{"device", "auto"}, {"size", "full"}, {"repeat", "5"}};
Device device;
std::optional<DryDevice> dry;  // the host's side of every row at its full size, without a GPU and without times
bool tiny = false;

void print(const nlohmann::json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// Milliseconds of one call: the median of `repeat` measurements of `times` calls each, after one that is not counted.
double time_of(const std::function<void()>& work, int64_t times = 1) {
  work();
  std::vector<double> all;
  for (int64_t i = 0; i < std::max<int64_t>(1, std::stoll(settings["repeat"])); ++i) {
    synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    for (int64_t k = 0; k < times; ++k) work();
    synchronize(device);
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    all.push_back(passed.count() / static_cast<double>(times));
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

uint64_t stream = 0;
Tensor random(const Shape& shape, double deviation = 1) {
  return scale(randn(shape, {7, ++stream}, DType::bf16, device), deviation);
}

// ---- memory and products ----

void rates() {
  const int64_t n = tiny ? 64 : 8192, elements = tiny ? 4096 : int64_t{1} << 29;
  Tensor a = random({n, n}), b = random({n, n}), x = random({elements}), y = empty_like(x);
  const double cube = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  const double product = time_of([&] { matmul(a, b); }, 10), copy = time_of([&] { y.copy_(x); }, 10);
  print({{"name", "product of large matrices"}, {"ms", product}, {"tflop_per_s", 2 * cube / product / 1e9}});
  print({{"name", "copy"}, {"ms", copy}, {"tb_per_s", 4.0 * static_cast<double>(elements) / copy / 1e9}});
}

// ---- launches ----

void launches() {
  const int64_t count = tiny ? 10 : 2000;
  Tensor x = random({1024});
  const auto work = [&] {
    for (int64_t i = 0; i < count; ++i) backend(device).copy.fill(1, x);
  };
  const double each = 1e3 / static_cast<double>(count);
  print({{"name", "launch"}, {"us_per_kernel", time_of(work) * each}});
  Graph graph(device, work);
  print({{"name", "graph node"}, {"us_per_kernel", time_of([&] { graph.replay(); }) * each}, {"nodes", count}});
}

// The products of one block of query rows: every sample by a call of its own, and all in one; replayed, so that the
// host does not count.
void batches() {
  struct Shapes {
    const char* name;
    int64_t samples, heads, rows, keys, d;
  };
  std::vector<Shapes> all = {{"q k^T N16 d64", 8, 16, 256, 2048, 64},
                             {"q k^T N32 d128", 8, 32, 256, 2048, 128},
                             {"q k^T window N16 d64", 128, 16, 128, 384, 64}};
  if (tiny) all = {{"q k^T tiny", 2, 2, 8, 16, 8}};
  for (const Shapes& s : all) {
    Tensor q = random({s.samples * s.heads, s.rows, s.d}), k = random({s.samples * s.heads, s.keys, s.d}),
           scores = empty({s.samples * s.heads, s.rows, s.keys}, DType::bf16, device);
    const auto product = [&](int64_t begin, int64_t end) {
      Tensor part = scores.sliced(0, begin, end);
      backend(device).matmul.product(q.sliced(0, begin, end), k.sliced(0, begin, end).transposed(), false, part);
    };
    const auto separate = [&] {
      for (int64_t b = 0; b < s.samples; ++b) product(b * s.heads, (b + 1) * s.heads);
    };
    const auto together = [&] { product(0, s.samples * s.heads); };
    separate(), together();  // the algorithms are chosen outside of captures
    Graph calls(device, separate), batch(device, together);
    print({{"name", std::string("products ") + s.name},
           {"calls", s.samples},
           {"ms_calls", time_of([&] { calls.replay(); }, 5)},
           {"ms_batch", time_of([&] { batch.replay(); }, 5)}});
  }
}

// ---- attention, kernel by kernel ----

HeadMixing random_compose(int64_t B, int64_t T, int64_t N) {
  HeadMixing c;
  for (Tensor* x : {&c.q_down, &c.q_up, &c.k_down, &c.k_up}) *x = random({B, T, 1, 2, N}, 0.3);
  for (Tensor* x : {&c.q_gate, &c.k_gate}) *x = random({B, T, 1, N}, 0.3);
  return c;
}

// Launches of one layer's attention, forward and backward, and the bytes that they move for a score.
void print_counts(const std::string& where, double scores) {
  int64_t launches = 0;
  double bytes = 0;
  for (const DryWork& w : dry->log())
    if (w.op == "dcmha_forward" || w.op == "dcmha_backward") ++launches, bytes += static_cast<double>(w.bytes);
  print({{"name", "counted " + where}, {"launches", launches}, {"bytes_per_score", bytes / scores}});
}

void attention() {
  struct Shapes {
    const char* name;
    int64_t B, N, d, T;
  };
  std::vector<Shapes> all = {{"N16 d64 B8 T2048", 8, 16, 64, 2048},
                             {"N32 d80 B8 T2048", 8, 32, 80, 2048},
                             {"N32 d128 B8 T2048", 8, 32, 128, 2048}};
  if (tiny) all = {{"N16 d16 B1 T32", 1, 16, 16, 32}};
  Tensor large = random({tiny ? 1024 : int64_t{1} << 28}), copy = empty_like(large);
  for (const Shapes& s : all) {
    for (const int64_t window : {int64_t{0}, int64_t{tiny ? 8 : 256}}) {
      DcmhaOptions options;
      options.mask.window = window;
      std::vector<Tensor> leaves;
      for (int i = 0; i < 3; ++i)  // heads first in memory, as the layer makes them
        leaves.push_back(random({s.B, s.N, s.T, s.d}).permuted({0, 2, 1, 3}));
      const HeadMixing pre = random_compose(s.B, s.T, s.N), post = random_compose(s.B, s.T, s.N);
      for (Tensor& x : leaves) require_grad(x);
      const Tensor dy = random({s.B, s.T, s.N, s.d});
      const auto work = [&] {
        backward(dcmha(leaves[0], leaves[1], leaves[2], pre, post, options), dy);
        for (Tensor& x : leaves) zero_grad(x);
      };
      double scores = 0;
      for (int64_t t = 0; t < s.T; ++t) scores += static_cast<double>(options.mask.end(t, s.T) - options.mask.first(t));
      scores *= static_cast<double>(s.B * s.N);
      const std::string where = s.name + std::string(window ? " W" + std::to_string(window) : " global");
      if (dry) dry->clear();
      work();
      if (dry) {
        print_counts(where, scores);
        continue;
      }
      const std::vector<LaunchTime> times = backend(device).stream.launch_times([&] {
        const EnableGrad on;                             // inside a kernel of the table nothing is recorded
        for (int i = 0; i < 20; ++i) copy.copy_(large);  // work for the GPU, so that the host is ahead of it
        work();
      });
      for (const LaunchTime& t : times)
        print({{"name", "kernel " + where + ": " + t.name},
               {"launches", t.launches},
               {"ms", t.milliseconds},
               {"ps_per_score", t.milliseconds * 1e9 / scores}});
    }
  }
}

// Runs a group of rows; what it cannot give is a row too.
void rows(const char* name, bool possible, void (*work)()) {
  if (!possible) return print({{"name", name}, {"reason", "not on " + str(device)}});
  try {
    work();
  } catch (const Error& error) {
    print({{"name", name}, {"error", error.what()}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::read_arguments(argc, argv, settings)) return 2;
  try {
    if (settings["device"] == "dry") dry.emplace();
    device = dry ? dry->device() : parse_device(settings["device"]);
    tiny = settings["size"] == "tiny";
    const StreamKernels& kernels = backend(device).stream;
    rows("rates", true, rates);
    rows("launches", static_cast<bool>(kernels.begin_capture), launches);
    rows("batches", static_cast<bool>(kernels.begin_capture), batches);
    rows("attention", static_cast<bool>(kernels.launch_times), attention);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
  dry.reset();
  return 0;
}
