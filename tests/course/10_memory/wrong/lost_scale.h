// expect: dq of 24 queries, 24 keys, blocks of 24, element 16.*hint: dS = P .*dq = dS k times the scale
#pragma once
#define attention_backward attention_backward_right
#include "../exercise.h"
#undef attention_backward

namespace exercise {

inline Gradients attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Result& result,
                                    const Tensor& dy, int64_t block) {
  Gradients out = attention_backward_right(q, k, v, result, dy, block);
  out.dq = out.dq * std::sqrt(static_cast<double>(q.dim(2)));
  return out;
}

}  // namespace exercise
