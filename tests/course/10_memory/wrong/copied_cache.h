// expect: next  step: no copy of the cache.*2000 positions in blocks of 64: expected a peak below 256000 bytes
// Right values, but each step copies all keys and values before it looks at them.
#pragma once
#define step step_right
#include "../exercise.h"
#undef step

namespace exercise {

inline Tensor step(Cache& cache, const Tensor& q, const Tensor& k, const Tensor& v, int64_t block) {
  append(cache, k, v);
  const auto used = [&](const Tensor& x) { return x.sliced(1, 0, cache.length).contiguous(); };
  return attention(q, used(cache.keys), used(cache.values), block).y;
}

}  // namespace exercise
