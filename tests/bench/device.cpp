// Times the kernels of a device, each beside the ceiling that this device was measured to have: the product of large
// matrices for arithmetic, the copy of a large tensor for memory.
// Usage: bench_device [device=cuda:0|cpu|dry] [group=all|gemm|rows|attention|decode] [row=PART OF A NAME]
//                     [size=full|tiny] [repeat=20] [graph=1|0] [json=0|1]
// Prints a table, or with json=1 one JSON object a row.
// On a GPU the work of a row is captured and replayed, so that the host's launches are no part of its time; work that
// reads values back, or graph=0, is launched ("captured": false).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/tensor/dry/dry_device.h"
#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/update_rules.h"

using namespace braid;

namespace {

std::map<std::string, std::string> settings = {{"device", "auto"}, {"group", "all"}, {"row", ""},  {"size", "full"},
                                               {"repeat", "20"},   {"graph", "1"},   {"json", "0"}};
Device device;
bool tiny = false;

double milliseconds(const std::function<void()>& work, int64_t times) {
  synchronize(device);
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; ++i) work();
  synchronize(device);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(times);
}

bool captured = false;  // the work that was measured last

// The work as a graph, after a first call that allocates and chooses what it needs; nullptr where it cannot be
// captured.
std::unique_ptr<Graph> graph_of(const std::function<void()>& work) {
  work();
  if (settings["graph"] != "1" || !backend(device).stream.begin_capture) return nullptr;
  try {
    return std::make_unique<Graph>(device, work);
  } catch (const Error&) {  // it reads values back, or memory does not suffice
    return nullptr;
  }
}

// The median over `repeat` measurements, each long enough for the clock and for what it costs to wait for a device.
double median_ms(const std::function<void()>& original) {
  const std::unique_ptr<Graph> graph = graph_of(original);
  captured = graph != nullptr;
  const std::function<void()> work = graph ? [&graph] { graph->replay(); } : original;
  work();
  double once = milliseconds(work, 1);
  int64_t times = std::clamp<int64_t>(static_cast<int64_t>((tiny ? 0.1 : 5.0) / once), 1, 1000);
  std::vector<double> measured;
  for (int64_t i = 0; i < std::stoll(settings["repeat"]); ++i) measured.push_back(milliseconds(work, times));
  std::sort(measured.begin(), measured.end());
  return measured[measured.size() / 2];
}

uint64_t stream = 0;
Tensor random(const Shape& shape, double deviation = 1, DType dtype = DType::bf16) {
  return scale(randn(shape, {7, ++stream}, dtype, device), deviation);
}
Tensor random_ids(const Shape& shape, int64_t limit) {
  std::vector<int64_t> ids(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(random_bits(i, {7, 1})) % limit;
  return from_vector(ids, shape, device);
}

struct Ceilings {
  double flops = 0, bytes = 0;  // a second
} ceilings;

bool selected(const std::string& group, const std::string& name) {
  return (settings["group"] == "all" || settings["group"] == group) && name.find(settings["row"]) != std::string::npos;
}

void print_row(const std::string& name, double ms, double ps_per_element, double percent, const char* of,
               int64_t peak) {
  double mib = static_cast<double>(peak) / (1 << 20);
  if (settings["json"] == "1") {
    std::printf(
        "{\"name\": \"%s\", \"ms\": %.6g, \"ps_per_element\": %.4g, \"percent\": %.4g, \"of\": \"%s\", "
        "\"peak_mib\": %.1f, \"captured\": %s}\n",
        name.c_str(), ms, ps_per_element, percent, of, mib, captured ? "true" : "false");
  } else {
    char per[32] = "", share[48] = "";
    if (ps_per_element > 0) std::snprintf(per, sizeof per, "%.3f", ps_per_element);
    if (percent > 0) std::snprintf(share, sizeof share, "%.0f %% of %s", percent, of);
    std::printf("| %s | %.4f | %s | %s | %.0f |\n", name.c_str(), ms, per, share, mib);
  }
  std::fflush(stdout);
}

// The memory that one call needs beyond what was allocated before it.
int64_t peak_of(const std::function<void()>& work) {
  work();
  reset_peak_memory(device);
  int64_t before = memory_stats(device).current;
  work();
  return memory_stats(device).peak - before;
}

void arithmetic(const std::string& name, double flops, const std::function<void()>& work) {
  if (!selected("gemm", name)) return;
  double ms = median_ms(work);
  print_row(name, ms, 0, 100 * flops / (ms / 1e3) / ceilings.flops, "the product", peak_of(work));
}
void memory(const std::string& name, double bytes, const std::function<void()>& work) {
  if (!selected("rows", name)) return;
  double ms = median_ms(work);
  print_row(name, ms, 0, 100 * bytes / (ms / 1e3) / ceilings.bytes, "the copy", peak_of(work));
}

void measure_ceilings() {
  int64_t n = tiny ? 64 : 8192;
  Tensor a = random({n, n}), b = random({n, n});
  double cube = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  ceilings.flops = 2 * cube / (median_ms([&] { matmul(a, b); }) / 1e3);
  Tensor x = random({tiny ? 4096 : int64_t{1} << 29}), y = empty_like(x);
  ceilings.bytes = 2.0 * 2.0 * static_cast<double>(x.numel()) / (median_ms([&] { y.copy_(x); }) / 1e3);
  if (settings["json"] == "1") return;
  std::printf("ceilings measured on %s: product of bf16 matrices %.1f TFLOP/s, copy %.3f TB/s (read and write)\n\n",
              str(device).c_str(), ceilings.flops / 1e12, ceilings.bytes / 1e12);
  std::printf("| row | ms | ps/element | share of the ceiling | peak MiB |\n|---|--:|--:|--:|--:|\n");
}

void gemm_rows() {
  int64_t rows = tiny ? 64 : 16384;
  for (int64_t D : tiny ? std::vector<int64_t>{32} : std::vector<int64_t>{768, 1024, 2560, 4096}) {
    std::string size =
        std::to_string(rows) + "x" + std::to_string(D) + " W " + std::to_string(D) + "x" + std::to_string(D);
    if (!selected("gemm", "linear forward " + size) && !selected("gemm", "linear dx " + size) &&
        !selected("gemm", "linear dW " + size))
      continue;
    Tensor x = random({rows, D}), w = random({D, D}), dy = random({rows, D});
    double flops = 2 * static_cast<double>(rows) * static_cast<double>(D) * static_cast<double>(D);
    arithmetic("linear forward " + size, flops, [&] { matmul(x, transpose(w)); });
    arithmetic("linear dx " + size, flops, [&] { matmul(dy, w); });
    arithmetic("linear dW " + size, flops, [&] { matmul(transpose(dy), x); });
  }
}

// Forward with the graph, then backward; the gradients are dropped afterwards.
std::function<void()> both(std::vector<Tensor> leaves, std::function<Tensor()> run) {
  for (Tensor& x : leaves) require_grad(x);
  return [=] {
    Tensor y = run();
    backward(y, full(y.shape(), 1, y.dtype(), device));
    for (Tensor x : leaves) zero_grad(x);
  };
}

void row_rows() {
  int64_t rows = tiny ? 16 : 16384, D = tiny ? 64 : 2560, F = tiny ? 96 : 6912, V = tiny ? 100 : 50257;
  double n = static_cast<double>(rows * D), f = static_cast<double>(rows * F), v = static_cast<double>(rows * V);
  auto no_grad = [](std::function<void()> work) {
    return [work] {
      NoGrad off;
      work();
    };
  };
  {
    Tensor x = random({rows, D}), y = random({rows, D}), w = random({D});
    memory("add", 6 * n, no_grad([&] { add(x, y); }));
    memory("rms_norm forward", 4 * n, no_grad([&] { rms_norm(x, w, 1e-5); }));
    memory("layer_norm forward", 4 * n, no_grad([&] { layer_norm(x, w, w, 1e-5); }));
    memory("softmax forward", 4 * n, no_grad([&] { softmax(x); }));
    Tensor leaf = x.clone(), weight = w.clone();
    memory("rms_norm both", 14 * n, both({leaf, weight}, [=] { return rms_norm(leaf, weight, 1e-5); }));
    memory("softmax both", 14 * n, both({leaf}, [=] { return softmax(leaf); }));
  }
  {
    Tensor gate = random({rows, F}), up = random({rows, F});
    memory("swiglu forward", 6 * f, no_grad([&] { swiglu(gate, up); }));
    memory("gelu forward", 4 * f, no_grad([&] { gelu(gate); }));
    Tensor g = gate.clone(), u = up.clone();
    memory("swiglu both", 18 * f, both({g, u}, [=] { return swiglu(g, u); }));
  }
  {
    int64_t N = tiny ? 2 : 32, d = D / N;
    Tensor x = random({1, rows, N, d}), cosine = random({1, rows, d / 2}, 1, DType::f32), sine = cosine.clone();
    memory("rope forward", 4 * n, no_grad([&] { rope(x, cosine, sine); }));
  }
  if (selected("rows", "cross_entropy both")) {
    Tensor logits = random({rows, V}), targets = random_ids({rows}, V);
    memory("cross_entropy both", 6 * v, both({logits}, [=] { return cross_entropy(logits, targets); }));
  }
  if (selected("rows", "adamw")) {  // weight, gradient, two moments read; weight, two moments written: f32
    int64_t count = tiny ? 1000 : int64_t{1} << 28;
    Tensor w = random({count}, 1, DType::f32), g = random({count}, 1, DType::f32);
    Tensor first = zeros_like(w), second = zeros_like(w);
    const Tensor scalars = from_values({1e-3, 1, 1.5, 2.5}, {4}, DType::f64).to(device);
    const UpdateStep step{{{w, g, {first, second}, 0.1}}, {0.9, 0.95, 1e-8, 0}, scalars};
    memory("adamw", 28 * static_cast<double>(count),
           [&] { backend(device).optimizer.update(UpdateRule::adamw, step); });
  }
}

struct AttentionShape {
  const char* name;
  int64_t B, N, d, T;
};

HeadMixing random_compose(int64_t B, int64_t T, int64_t N) {
  constexpr int64_t R = 2;
  HeadMixing c;
  for (Tensor* x : {&c.q_down, &c.q_up, &c.k_down, &c.k_up}) *x = random({B, T, 1, R, N}, 0.3);
  for (Tensor* x : {&c.q_gate, &c.k_gate}) *x = random({B, T, 1, N}, 0.3);
  return c;
}

void attention_rows() {
  std::vector<AttentionShape> shapes = {
      {"405M N16 d64 B8 T2048", 8, 16, 64, 2048}, {"1.4B N32 d64 B8 T2048", 8, 32, 64, 2048},
      {"2.8B N32 d80 B8 T2048", 8, 32, 80, 2048}, {"6.9B N32 d128 B8 T2048", 8, 32, 128, 2048},
      {"405M N16 d64 B1 T8192", 1, 16, 64, 8192}, {"6.9B N32 d128 B1 T8192", 1, 32, 128, 8192}};
  if (tiny) shapes = {{"tiny N16 d16 B1 T32", 1, 16, 16, 32}};
  for (const AttentionShape& s : shapes) {
    for (int64_t window : {int64_t{0}, int64_t{tiny ? 8 : 256}}) {
      // Plain attention runs in cuDNN where Braid was built with it. An offset of the mask, which cuDNN does not
      // support, selects the generic kernels: every row then has one key more.
      for (const std::string kind : {"MHA", "MHA generic", "DCMHA"}) {
        std::string name = kind + " " + s.name + (window ? " W" + std::to_string(window) : " global");
        if (!selected("attention", name)) continue;
        DcmhaOptions options;
        options.mask.window = window;
        options.mask.offset = kind == "MHA generic" ? 1 : 0;
        const int64_t S = s.T + 2 * options.mask.offset;
        Tensor q = random({s.B, s.T, s.N, s.d}), k = random({s.B, S, s.N, s.d}), v = random({s.B, S, s.N, s.d});
        HeadMixing pre, post;
        std::vector<Tensor> leaves = {q, k, v};
        if (kind == "DCMHA") {
          pre = random_compose(s.B, s.T, s.N), post = random_compose(s.B, s.T, s.N);
          for (const HeadMixing* c : {&pre, &post}) {
            for (const Tensor& x : {c->q_down, c->q_up, c->k_down, c->k_up, c->q_gate, c->k_gate}) leaves.push_back(x);
          }
        }
        auto run = [=] { return dcmha(q, k, v, pre, post, options); };
        double elements = 0;
        for (int64_t t = 0; t < s.T; ++t) {
          elements += static_cast<double>(options.mask.end(t, S) - options.mask.first(t));
        }
        elements *= static_cast<double>(s.B * s.N);
        auto report = [&](const std::string& what, double flops_per_element, const std::function<void()>& work) {
          double ms = median_ms(work), flops = flops_per_element * elements * static_cast<double>(s.d);
          print_row(name + what, ms, ms * 1e9 / elements, 100 * flops / (ms / 1e3) / ceilings.flops, "the product",
                    peak_of(work));
        };
        report(" forward", 4, [&] {
          NoGrad off;
          run();
        });
        report(" both", 14, both(leaves, run));
      }
    }
  }
}

// One new token against S cached ones. Bytes: keys and values, and for DCMHA the key-side weights, read once.
void decode_rows() {
  int64_t B = 1, N = tiny ? 4 : 32, d = tiny ? 16 : 80, R = 2;
  for (int64_t S : tiny ? std::vector<int64_t>{32} : std::vector<int64_t>{2048, 32768}) {
    for (bool dcmha_kind : {false, true}) {
      std::string name = std::string(dcmha_kind ? "DCMHA" : "MHA") + " decode N" + std::to_string(N) + " d" +
                         std::to_string(d) + " S" + std::to_string(S);
      if (!selected("decode", name)) continue;
      Tensor q = random({B, 1, N, d}), k = random({B, S, N, d}), v = random({B, S, N, d});
      HeadMixing pre, post;
      if (dcmha_kind) {
        for (HeadMixing* c : {&pre, &post}) {
          for (Tensor* x : {&c->q_down, &c->q_up}) *x = random({B, 1, 1, R, N}, 0.3);
          for (Tensor* x : {&c->k_down, &c->k_up}) *x = random({B, S, 1, R, N}, 0.3);
          c->q_gate = random({B, 1, 1, N}, 0.3), c->k_gate = random({B, S, 1, N}, 0.3);
        }
      }
      DcmhaOptions options;
      options.mask.offset = S - 1;
      auto run = [=] {
        NoGrad off;
        dcmha(q, k, v, pre, post, options);
      };
      double ms = median_ms(run), bytes = 2.0 * static_cast<double>(B * S * N * (2 * d + (dcmha_kind ? 10 : 0)));
      print_row(name, ms, 0, 100 * bytes / (ms / 1e3) / ceilings.bytes, "the copy", peak_of(run));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::read_arguments(argc, argv, settings)) return 2;
  try {
    std::optional<DryDevice> dry;  // the host's side of every row at its full size, without a GPU and without times
    if (settings["device"] == "dry") dry.emplace();
    device = dry ? dry->device() : parse_device(settings["device"]);
    tiny = settings["size"] == "tiny";
    measure_ceilings();
    gemm_rows();
    row_rows();
    attention_rows();
    decode_rows();
    if (const std::string uses = text_of(attention_uses()); !uses.empty()) {
      if (settings["json"] == "1") {
        std::printf("%s\n", nlohmann::json{{"attention", uses}}.dump().c_str());
      } else {
        std::printf("\nattention: %s\n", uses.c_str());
      }
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
