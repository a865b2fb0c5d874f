// expect: keys: expected the buffer of the start, found another one
#pragma once
#define append append_right
#include "../exercise.h"
#undef append

namespace exercise {

inline void append(Cache& cache, const Tensor& k, const Tensor& v) {
  cache.keys = braid::concat({cache.keys.sliced(1, 0, cache.length), k}, 1);
  cache.values = braid::concat({cache.values.sliced(1, 0, cache.length), v}, 1);
  cache.length += k.dim(1);
}

}  // namespace exercise
