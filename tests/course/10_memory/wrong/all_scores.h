// expect: 512 keys in blocks of 32: expected a peak below 8388608 bytes, found
#pragma once
#define attention attention_right
#include "../exercise.h"
#undef attention

namespace exercise {

inline Result attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t) {
  return attention_right(q, k, v, k.dim(1));
}

}  // namespace exercise
