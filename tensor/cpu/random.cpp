// Random numbers: element i of the result depends on its index and the key alone (tensor/random.h).
#include "braid/tensor/random.h"
#include "braid/tensor/cpu/ivdep.h"

#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/kernels/random.h"

namespace braid::cpu {

namespace {

// u[0, n) = unit(random_bits(i + j, key)); i is a multiple of 4, u has room for n rounded up to 4. philox() of all
// counters of a block side by side: each round is a vector loop.
void units(int64_t i, int64_t n, RandomKey key, float* u) {
  constexpr int64_t kCounters = kBlock / 4;
  const int64_t count = detail::ceil_div(n, 4);
  uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
  for (int64_t b = 0; b < count; ++b) {
    const uint64_t counter = static_cast<uint64_t>(i / 4 + b);
    c0[b] = static_cast<uint32_t>(counter);
    c1[b] = static_cast<uint32_t>(counter >> 32);
    c2[b] = static_cast<uint32_t>(key.stream);
    c3[b] = static_cast<uint32_t>(key.stream >> 32);
  }
  for (PhiloxKey round(key); round.rounds > 0; round.next()) {
    for (int64_t b = 0; b < count; ++b) {
      const Philox4 words = philox_round({{c0[b], c1[b], c2[b], c3[b]}}, round);
      c0[b] = words.v[0];
      c1[b] = words.v[1];
      c2[b] = words.v[2];
      c3[b] = words.v[3];
    }
  }
  for (int64_t b = 0; b < count; ++b) {
    u[4 * b] = unit(c0[b]);
    u[4 * b + 1] = unit(c1[b]);
    u[4 * b + 2] = unit(c2[b]);
    u[4 * b + 3] = unit(c3[b]);
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
      for (int64_t j = 0; j < n; j += 2) {  // an odd last one has a pair too
        const NormalPair<A> pair = normal_numbers(u[j], u[j + 1], A(mean), A(deviation));
        by[j] = pair.first;
        by[j + 1] = pair.second;
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
