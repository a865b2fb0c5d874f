// expect: dq, element 12 in row-major order: expected .*, found.*hint: dq = ds k, times the scale
// The scale of the scores is lost in the backward pass, and the mask hides it for token 0, whose dq is 0.
#pragma once
#include <braid/autograd.h>

#define attention right_attention
#include "tests/course/07_attention/exercise.h"
#undef attention

namespace exercise {

inline Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  const Tensor qs = split_heads(q.detach(), heads), ks = split_heads(k.detach(), heads);
  const Tensor vs = split_heads(v.detach(), heads), p = probabilities(scores(qs, ks));
  return record("attention", merge_heads(matmul(p, vs)), {q, k, v}, [=](const Tensor& dy) {
    const Tensor dys = split_heads(dy, heads), ds = scores_gradient(p, matmul(dys, transpose(vs)));
    return braid::Grads{merge_heads(matmul(ds, ks)), merge_heads(matmul(transpose(ds), qs)),
                        merge_heads(matmul(transpose(p), dys))};
  });
}

}  // namespace exercise
