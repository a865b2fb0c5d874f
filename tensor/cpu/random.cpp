// Random numbers: element i of the result depends on its index and the key alone (tensor/random.h).
#include "braid/tensor/kernels/random.h"
#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/random_blocks.h"

namespace braid::cpu {

namespace {

// u[0, n) = unit(random_bits(i + j, key)); i is a multiple of 4, u has room for n rounded up to 4.
void units(int64_t i, int64_t n, RandomKey key, float* u) {
  RandomBlocks<kBlock / 4> blocks;
  const int64_t count = detail::ceil_div(n, 4);
  blocks.draw(static_cast<uint64_t>(i / 4), count, key);
  for (int64_t b = 0; b < count; ++b)
    for (int w = 0; w < 4; ++w) u[4 * b + w] = unit(blocks.word[w][b]);
}

void dropout(In x, double p, RandomKey key, Out y) {
  visit_float(x.dtype(), "dropout", [&]<class T>() {
    using A = Accumulate<T>;
    StridedView lx(x), ly(y);
    A kept = A(1 - p);
    float limit = static_cast<float>(p);
    for_blocks(y.numel(), 32, [&](int64_t i, int64_t n) {
      BlockBuffer<T> bx, by;
      float u[kBlock];
      units(i, n, key, u);
      const T* px = load<T>(lx, i, n, bx);
      T* py = output_block<T>(ly, i, n, by);
      map(n, py, inputs(px, u), [kept, limit](A v, A r) { return r > limit ? v / kept : A(0); });
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
