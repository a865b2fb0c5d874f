// expect: composed_attention, pre alone, element 0 .*found NaN.*hint: first compose, then mask
// The mask comes before Compose, which then multiplies -infinity by numbers of both signs.
#pragma once
#include <braid/autograd.h>

#define composed_attention right_composed_attention
#include "tests/course/08_compose/exercise.h"
#undef composed_attention

namespace exercise {

inline Tensor composed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Mixing& pre,
                                 const Mixing& post) {
  const Tensor scores = braid::einsum("btnd,bsnd->bnts", {q, k}) / std::sqrt(static_cast<double>(q.dim(3)));
  const Tensor masked = mask_scores(scores, {}, -std::numeric_limits<double>::infinity());
  return braid::einsum("bnts,bsnd->btnd", {compose(softmax(compose(masked, pre)), post), v});
}

}  // namespace exercise
