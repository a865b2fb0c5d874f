// Which kernel multiplies fastest, shape by shape: every candidate on the same tiles and threads, interleaved, medians.
//   bench_gemm [THREADS [SECONDS_PER_SHAPE [FILTER]]]
// Prints one row per shape in GFLOP/s: the candidates, "chosen" (what gemm() does) and which kernel that is. OpenBLAS
// is measured as a candidate when libopenblas.so.0 can be loaded; Braid does not use it.
// Group "rows": linear layers as chosen by shape and row-invariant (tensor/row_invariant.h), few and many rows, each
// call with weights that have left the caches, beside the time of only reading them.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "braid/tensor/cpu/gemm/gemm.h"
#include "braid/tensor/cpu/instruction_sets.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/row_invariant.h"

using namespace braid;
using namespace braid::cpu;

namespace {

struct Shape {
  const char* group;
  int64_t count;  // products in the batch
  bool ta, tb;
  int64_t m, n, k;
};

const Shape kShapes[] = {
    {"square", 1, false, false, 64, 64, 64},
    {"square", 1, false, false, 128, 128, 128},
    {"square", 1, false, false, 256, 256, 256},
    {"square", 1, false, false, 512, 512, 512},
    {"square", 1, false, false, 1024, 1024, 1024},
    {"square", 1, false, false, 2048, 2048, 2048},
    // y = x W^T, W [out,in]
    {"linear", 1, false, true, 4096, 256, 256},
    {"linear", 1, false, true, 4096, 768, 256},
    {"linear", 1, false, true, 4096, 256, 768},
    {"linear", 1, false, true, 4096, 258, 256},
    {"linear", 1, false, true, 4096, 32, 256},
    // dx = dy W
    {"linear dx", 1, false, false, 4096, 256, 256},
    {"linear dx", 1, false, false, 4096, 256, 768},
    {"linear dx", 1, false, false, 4096, 768, 256},
    {"linear dx", 1, false, false, 4096, 256, 258},
    {"linear dx", 1, false, false, 4096, 256, 32},
    // dW = dy^T x
    {"linear dW", 1, true, false, 256, 256, 4096},
    {"linear dW", 1, true, false, 768, 256, 4096},
    {"linear dW", 1, true, false, 256, 768, 4096},
    {"linear dW", 1, true, false, 258, 256, 4096},
    {"linear dW", 1, true, false, 256, 32, 4096},
    // linear layers of a model of width 768, a sample of 1024 tokens
    {"wide", 1, false, true, 1024, 768, 768},
    {"wide", 1, false, true, 1024, 2048, 768},
    {"wide", 1, false, true, 1024, 768, 2048},
    {"wide dx", 1, false, false, 1024, 768, 768},
    {"wide dx", 1, false, false, 1024, 768, 2048},
    {"wide dx", 1, false, false, 1024, 2048, 768},
    {"wide dW", 1, true, false, 768, 768, 1024},
    {"wide dW", 1, true, false, 2048, 768, 1024},
    {"wide dW", 1, true, false, 768, 2048, 1024},
    // scores q k^T, output P v, and their derivatives
    {"attention", 64, false, true, 512, 512, 32},
    {"attention", 64, false, false, 512, 32, 512},
    {"attention", 64, true, false, 512, 32, 512},
    {"attention", 64, false, true, 128, 384, 32},
    {"attention", 64, false, false, 128, 32, 384},
    {"attention", 64, true, false, 384, 32, 128},
    {"attention", 64, false, true, 128, 384, 64},
    {"attention", 64, false, false, 128, 64, 384},
    // head mixing per position, and its derivatives
    {"compose", 4096, false, false, 4, 512, 8},
    {"compose", 4096, false, false, 8, 512, 4},
    {"compose", 4096, false, false, 8, 512, 8},
    {"compose", 4096, true, false, 4, 512, 8},
    {"compose", 4096, true, false, 8, 512, 4},
    {"compose", 4096, false, false, 8, 4, 512},
    {"compose", 4096, false, true, 8, 4, 512},
    {"compose", 4096, false, true, 8, 8, 512},
    {"compose", 1024, false, false, 4, 2048, 16},
    {"compose", 1024, false, false, 16, 2048, 4},
    {"compose", 1024, false, true, 16, 4, 2048},
    {"compose", 1024, false, false, 32, 512, 32},
    {"compose", 1024, false, true, 32, 32, 512},
    {"compose", 4096, false, false, 512, 4, 8},
    {"compose", 4096, false, true, 512, 8, 4},
    {"generator", 4, false, false, 4096, 32, 32},
    {"generator", 4, true, false, 32, 32, 4096},
    // decode: few rows against weights [out,in]
    {"decode", 1, false, true, 1, 256, 256},
    {"decode", 1, false, true, 1, 768, 256},
    {"decode", 1, false, true, 1, 4096, 1024},
    {"decode", 1, false, true, 4, 1024, 1024},
    {"decode", 1, false, true, 8, 1024, 1024},
    {"decode", 1, false, true, 16, 1024, 1024},
    {"decode", 1, false, true, 32, 1024, 1024},
    {"decode", 1, false, false, 1, 1024, 1024},
    {"decode", 1, false, false, 8, 1024, 1024},
    {"decode", 1, false, false, 16, 1024, 1024},
    {"decode", 1, false, false, 1024, 1, 1024},
    {"decode", 1, true, false, 1024, 1, 1024},
    {"decode", 64, false, true, 1, 512, 64},
    {"decode", 64, false, false, 1, 64, 512},
    // small squares
    {"small", 1024, false, false, 8, 8, 8},
    {"small", 1024, false, true, 16, 16, 16},
    {"small", 1024, false, false, 16, 16, 16},
    {"small", 256, false, false, 32, 32, 32},
    {"small", 256, false, true, 32, 32, 32},
    {"small", 256, true, false, 32, 32, 32},
    {"small", 64, false, false, 64, 64, 64},
    {"small", 64, false, true, 64, 64, 64},
    {"small", 64, false, false, 96, 96, 96},
    {"small", 64, false, true, 128, 128, 128},
};

// Row-major cblas_?gemm, found at run time.
template <class T>
using Cblas = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
template <class T>
Cblas<T> cblas = nullptr;
template <class T>
void gemm_openblas(const Gemm<T>& g) {
  cblas<T>(101, g.ta ? 112 : 111, g.tb ? 112 : 111, int(g.m), int(g.n), int(g.k), g.alpha, g.a, int(g.lda), g.b,
           int(g.ldb), g.beta, g.c, int(g.ldc));
}

template <class T>
std::vector<GemmKernel<T>> candidates(void* openblas) {
  const auto known = instruction_set().products().template of<T>().kernels;
  std::vector<GemmKernel<T>> all(known.begin(), known.end());
  if (openblas != nullptr) {
    cblas<T> = reinterpret_cast<Cblas<T>>(dlsym(openblas, sizeof(T) == 4 ? "cblas_sgemm" : "cblas_dgemm"));
    if (cblas<T> != nullptr) all.push_back({"openblas", gemm_openblas<T>});
  }
  return all;
}

// Seconds: of processor time for one thread, which other programs on the machine disturb least; else of the wall clock.
double now() {
  timespec t{};
  clock_gettime(threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// As tensors are: at the beginning of a cache line.
template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const Aligned&) const { return true; }
};
template <class T>
using Buffer = std::vector<T, Aligned<T>>;

template <class T>
void measure(const std::vector<GemmKernel<T>>& kernels, const Shape& s, double budget) {
  const size_t size_a = size_t(s.m * s.k), size_b = size_t(s.k * s.n), size_c = size_t(s.m * s.n);
  const size_t count = size_t(s.count);
  Buffer<T> a(count * size_a), b(count * size_b), c(count * size_c);
  for (size_t i = 0; i < a.size(); ++i) a[i] = T(double(i * 7919 % 1000) / 1000 - 0.5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = T(double(i * 104729 % 1000) / 1000 - 0.5);
  const Gemm<T> g{s.ta, s.tb,    s.m, s.n, s.k, T(1), nullptr, s.ta ? s.m : s.k, nullptr, s.tb ? s.k : s.n,
                  T(0), nullptr, s.n};
  const auto operands = [&](int64_t i) {
    return GemmOperands<T>{&a[size_t(i) * size_a], &b[size_t(i) * size_b], &c[size_t(i) * size_c]};
  };
  const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k) * double(s.count);
  const int inner = std::max(1, int(1e6 / flops));  // short products are timed several at a time
  const GemmKernel<T>& chosen = instruction_set().products().template of<T>().choose(s.tb, s.m, s.n, s.k);
  const size_t columns = kernels.size() + 1;  // the last one is what gemm() chooses
  std::vector<std::vector<double>> seconds(columns);
  Buffer<T> expected;
  const double start = now();
  for (int round = 0; round < 5 || (now() - start < budget && round < 200); ++round)
    for (size_t x = 0; x < columns; ++x) {
      if (round == 0) std::fill(c.begin(), c.end(), T(NAN));
      const double t = now();
      for (int r = 0; r < inner; ++r) {
        gemm_batched_with<T>(x + 1 < columns ? kernels[x] : chosen, s.count, operands, g);
      }
      if (round > 0) {
        seconds[x].push_back((now() - t) / inner);
        continue;
      }
      if (x == 0) expected = c;
      double worst = 0;
      for (size_t i = 0; i < c.size(); ++i) {
        const double difference = std::abs(double(c[i]) - double(expected[i]));
        if (!(difference <= worst)) worst = difference;
      }
      if (!(worst <= 1e-4 * std::sqrt(double(s.k)))) {
        std::printf("wrong result: kernel %zu, m %ld n %ld k %ld, difference %g\n", x, long(s.m), long(s.n), long(s.k),
                    worst);
        std::exit(1);
      }
    }
  char product[64];
  std::snprintf(product, sizeof product, "%ld x [%ld,%ld]%s [%ld,%ld]%s", long(s.count), long(s.m), long(s.k),
                s.ta ? "T" : "", long(s.k), long(s.n), s.tb ? "T" : "");
  std::printf("| %-9s | %-32s |", s.group, product);
  for (auto& times : seconds) {
    std::nth_element(times.begin(), times.begin() + ptrdiff_t(times.size() / 2), times.end());
    std::printf(" %8.1f |", flops / times[times.size() / 2] / 1e9);
  }
  std::printf(" %-5s |\n", chosen.name);
  std::fflush(stdout);
}

template <class T>
void table(const char* type, void* openblas, double budget, const char* filter) {
  const auto kernels = candidates<T>(openblas);
  std::printf("\n%s, GFLOP/s\n\n| group     | product (T: stored transposed)   |", type);
  for (const auto& kernel : kernels) std::printf(" %8s |", kernel.name);
  std::printf("   chosen | which |\n|---|---|");
  for (size_t i = 0; i < kernels.size(); ++i) std::printf("--:|");
  std::printf("--:|---|\n");
  for (const Shape& s : kShapes)
    if (filter == nullptr || std::strstr(s.group, filter) != nullptr) measure<T>(kernels, s, budget);
}

// Reads n bytes, in parallel, in the order in which a product with few rows does.
uint64_t read_all(const void* bytes, int64_t n) {
  constexpr int64_t piece = 1 << 18, lanes = 32;
  std::vector<uint64_t> sums(static_cast<size_t>(n / piece + 1));
  parallel_for(n / piece, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const auto* words = reinterpret_cast<const uint64_t*>(static_cast<const char*>(bytes) + p * piece);
      uint64_t sum[lanes] = {};
      for (int64_t i = 0; i < piece / 8; i += lanes)
        for (int64_t l = 0; l < lanes; ++l) sum[l] += words[i + l];
      for (uint64_t s : sum) sums[size_t(p)] += s;
    }
  });
  uint64_t total = 0;
  for (uint64_t s : sums) total += s;
  return total;
}

double median(std::vector<double>& seconds) {
  const auto middle = seconds.begin() + ptrdiff_t(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void measure_rows(DType type, int64_t in, int64_t out, double budget) {
  const int64_t bytes = in * out * size_of(type), copies = (int64_t{1} << 28) / bytes + 1;
  Tensor weights = empty({copies, out, in}, type);
  visit_float(type, "bench", [&]<class T>() {
    T* w = weights.mutable_data<T>();
    for (int64_t i = 0; i < weights.numel(); ++i) w[i] = T(float(i * 104729 % 1000) / 1000 - 0.5f);
  });
  volatile uint64_t sink = 0;
  for (const int64_t rows : {1, 4, 16, 64, 256}) {
    Tensor x = empty({rows, in}, type), y = empty({rows, out}, type);
    x.fill(0.5);
    std::vector<double> seconds[3];  // reading, chosen, row-invariant
    int64_t copy = 0;
    const double start = now();
    for (int round = 0; round < 5 || (now() - start < budget && round < 200); ++round)
      for (size_t which = 0; which < 3; ++which) {
        const Tensor w = weights.sliced(0, copy, copy + 1).squeezed(0);
        copy = (copy + 1) % copies;
        const double t = now();
        if (which == 0) {
          sink = sink + read_all(w.raw(), bytes);
        } else if (which == 1) {
          cpu_backend().matmul.linear(x, w, {}, y);
        } else {
          const RowInvariantProducts scope;
          cpu_backend().matmul.linear(x, w, {}, y);
        }
        seconds[which].push_back(now() - t);
      }
    const double read = median(seconds[0]), flops = 2.0 * double(rows * in * out);
    std::printf("| %-4s | %4ld x %4ld to %4ld | %6.1f |", str(type).c_str(), long(rows), long(in), long(out),
                double(bytes) / read / 1e9);
    for (size_t which : {1u, 2u}) {
      const double t = median(seconds[which]);
      std::printf(" %6.1f | %4.0f %% | %7.1f |", double(bytes) / t / 1e9, 100 * read / t, flops / t / 1e9);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

void rows_table(double budget) {
  std::printf(
      "\nlinear layers, weights read from memory: GB/s of the weights, share of only reading them, GFLOP/s\n\n");
  std::printf("| type | rows                 |   read | chosen |  share | GFLOP/s | invariant | share | GFLOP/s |\n");
  std::printf("|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const DType type : {DType::f32, DType::bf16}) {
    measure_rows(type, 768, 3072, budget);
    measure_rows(type, 3072, 768, budget);
    measure_rows(type, 2048, 2048, budget);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 2;
  const double budget = argc > 2 ? std::atof(argv[2]) : 0.5;
  const char* filter = argc > 3 ? argv[3] : nullptr;
  setenv("OPENBLAS_NUM_THREADS", "1", 1);  // read when the library is loaded: it must not start threads of its own
  void* openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  set_threads(count);
  std::printf("%d threads, %s\n", count, count == 1 ? "processor time" : "wall clock");
  table<float>("f32", openblas, budget, filter);
  table<double>("f64", openblas, budget / 2, filter);
  if (filter == nullptr || std::strstr("rows", filter) != nullptr) rows_table(budget);
}
