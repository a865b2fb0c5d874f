// Times one attention call, forward and forward + backward, in nanoseconds per score element that a query can see.
// Usage: bench_attention [heads=16] [head_dim=64] [length=2048] [window=0] [kind=dcmha|mha]
//                        [path=fused|chunked|reference] [dtype=f32|bf16|f16|f64] [threads=1] [repeat=5] [variant=]
//                        [batch=1] [backward=1]
// prints one JSON object. repeat=0: once, the first time. growth_mb: by how many megabytes (10^6) the process grew over
// its inputs at the most; the gradients that the call returns are part of it. product_gflops: billions of operations
// per second and thread of a large product of this type, a guide to the time of its products.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"

using namespace braid;

namespace {

std::map<std::string, std::string> settings = {
    {"heads", "16"},  {"head_dim", "64"}, {"length", "2048"}, {"window", "0"}, {"kind", "dcmha"}, {"path", "fused"},
    {"threads", "1"}, {"repeat", "5"},    {"variant", ""},    {"batch", "1"},  {"backward", "1"}, {"dtype", "f32"}};

int64_t number(const char* name) { return std::stoll(settings.at(name)); }

uint64_t stream = 0;
DType dtype = DType::f32;
Tensor random(const Shape& shape, double deviation) {
  Tensor x = scale(randn(shape, {7, ++stream}), deviation).to(dtype);
  return require_grad(x);
}

template <class Work>
double best_of(int64_t repeat, Work&& work) {
  double best = 1e300;
  for (int64_t i = 0; i <= repeat; ++i) {  // the first of several warms up
    auto start = std::chrono::steady_clock::now();
    work();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0 || repeat == 0) best = std::min(best, seconds);
  }
  return best;
}

// Megabytes of this process that lie in memory now.
double resident_mb() {
  long all = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (std::fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
  std::fclose(file);
  return double(resident) * double(sysconf(_SC_PAGESIZE)) / 1e6;
}

double peak_resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss);
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::read_arguments(argc, argv, settings)) return 2;
  int64_t B = number("batch"), N = number("heads"), d = number("head_dim"), T = number("length"), R = 2;
  set_threads(static_cast<int>(number("threads")));
  if (!cpu::attention::use_variant(settings["variant"])) {
    std::fprintf(stderr, "error: this processor cannot run the variant %s\n", settings["variant"].c_str());
    return 2;
  }
  if (!parse_dtype(settings["dtype"], dtype) || !is_float(dtype)) {
    std::fprintf(stderr, "error: expected dtype=f32, bf16, f16 or f64, found %s\n", settings["dtype"].c_str());
    return 2;
  }
  DcmhaOptions options;
  options.mask = {true, number("window"), 0};
  options.impl = settings["path"] == "fused"     ? AttentionImpl::fused
                 : settings["path"] == "chunked" ? AttentionImpl::chunked
                                                 : AttentionImpl::reference;
  Tensor q = random({B, T, N, d}, 1), k = random({B, T, N, d}, 1), v = random({B, T, N, d}, 1);
  HeadMixing pre, post;
  if (settings["kind"] == "dcmha") {
    for (HeadMixing* c : {&pre, &post}) {
      for (Tensor* x : {&c->q_down, &c->q_up, &c->k_down, &c->k_up}) *x = random({B, T, 1, R, N}, 0.3);
      for (Tensor* x : {&c->q_gate, &c->k_gate}) *x = random({B, T, 1, N}, 0.3);
    }
  }
  double pairs = 0;
  for (int64_t t = 0; t < T; ++t) pairs += double(options.mask.end(t, T) - options.mask.first(t));
  double elements = pairs * double(B * N);

  Tensor ones = full(q.shape(), 1, dtype);
  const double inputs_mb = resident_mb();
  double forward = best_of(number("repeat"), [&] {
    NoGrad off;
    dcmha(q, k, v, pre, post, options);
  });
  double both = 0;
  if (number("backward")) {
    both = best_of(number("repeat"), [&] {
      backward(dcmha(q, k, v, pre, post, options), ones);
      for (Tensor x : {q, k, v}) zero_grad(x);
      for (HeadMixing* c : {&pre, &post}) {
        for (Tensor* x : {&c->q_down, &c->q_up, &c->k_down, &c->k_up, &c->q_gate, &c->k_gate}) {
          if (*x) zero_grad(*x);
        }
      }
    });
  }
  const double peak_kib = peak_resident_kib();
  constexpr int64_t kProduct = 1024;
  const Tensor a = random({kProduct, kProduct}, 1), b = random({kProduct, kProduct}, 1);
  const double product = best_of(std::max<int64_t>(1, number("repeat")), [&] {
    NoGrad off;
    matmul(a, b);
  });
  double thread_seconds = 1e9 * double(threads()) / elements;
  std::printf(
      "{\"kind\": \"%s\", \"path\": \"%s\", \"dtype\": \"%s\", \"threads\": %d, \"elements\": %.0f, "
      "\"forward_seconds\": %.6g, \"both_seconds\": %.6g, \"forward_ns\": %.3f, \"both_ns\": %.3f, "
      "\"peak_rss_mib\": %.0f, \"growth_mb\": %.0f, \"product_gflops\": %.1f}\n",
      settings["kind"].c_str(), settings["path"].c_str(), settings["dtype"].c_str(), threads(), elements, forward, both,
      forward * thread_seconds, both * thread_seconds, peak_kib / 1024, peak_kib * 1024 / 1e6 - inputs_mb,
      2e-9 * kProduct * kProduct * kProduct / product / threads());
  return 0;
}
