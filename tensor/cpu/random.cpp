// Random numbers: element i of the result depends on its index and the key alone (tensor/random.h).
#include "braid/tensor/random.h"
#include "braid/tensor/cpu/ivdep.h"

#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/kernels/random.h"

namespace braid::cpu {

namespace {

// u[0, n) = unit(random_bits(i + j, key)); i is a multiple of 4, u has room for n rounded up to 4.
void units(int64_t i, int64_t n, RandomKey key, float* u) {
  uint64_t first = static_cast<uint64_t>(i) / 4;
  for (int64_t b = 0; b < (n + 3) / 4; ++b) {
    Philox4 words = philox(first + static_cast<uint64_t>(b), key);
    for (int k = 0; k < 4; ++k) u[4 * b + k] = unit(words.v[k]);
  }
}

void dropout(In x, double p, RandomKey key, Out y) {
  visit_accumulate(x.dtype(), "dropout", [&]<class A>() {
    StridedView lx(x), ly(y);
    A kept = A(1 - p);
    float limit = static_cast<float>(p);
    for_blocks(y.numel(), 32, [&](int64_t i, int64_t n) {
      A bx[kBlock], by[kBlock];
      float u[kBlock];
      units(i, n, key, u);
      const A* px = load(lx, i, n, bx);
      A* py = output_block(ly, i, n, by);
      BRAID_IVDEP
      for (int64_t j = 0; j < n; ++j) py[j] = u[j] > limit ? px[j] / kept : A(0);
      store(ly, i, n, py);
    });
  });
}

void uniform(double low, double high, RandomKey key, Out y) {
  visit_accumulate(y.dtype(), "uniform", [&]<class A>() {
    const auto range = uniform_range(y.dtype(), low, high).as<A>();
    StridedView ly(y);
    for_blocks(y.numel(), 32, [&](int64_t i, int64_t n) {
      A by[kBlock];
      float u[kBlock];
      units(i, n, key, u);
      A* py = output_block(ly, i, n, by);
      for (int64_t j = 0; j < n; ++j) py[j] = uniform_number(u[j], range);
      store(ly, i, n, py);
    });
  });
}

// Elements 2k and 2k + 1 are a pair, made from the uniform numbers 2k and 2k + 1.
void normal(double mean, double deviation, RandomKey key, Out y) {
  visit_accumulate(y.dtype(), "normal", [&]<class A>() {
    StridedView ly(y);
    for_blocks(y.numel(), 64, [&](int64_t i, int64_t n) {
      A by[kBlock];
      float u[kBlock];
      units(i, n, key, u);
      for (int64_t j = 0; j < n; j += 2) {
        NormalPair<A> pair = normal_numbers(u[j], u[j + 1], A(mean), A(deviation));
        by[j] = pair.first;
        if (j + 1 < n) by[j + 1] = pair.second;
      }
      A* py = output_block(ly, i, n, by);
      if (py != by) {
        for (int64_t j = 0; j < n; ++j) py[j] = by[j];
      }
      store(ly, i, n, py);
    });
  });
}

}  // namespace

constinit const RandomKernels random_kernels{
    .uniform = uniform,
    .normal = normal,
    .dropout = dropout,
};

}  // namespace braid::cpu
