// expect: y woᵀ without head 0 of 3, element 0 in row-major order: expected .*, found 0
// The rows of the head are cleared: what is written to the state, not what is read from the head.
#pragma once
#include <braid/autograd.h>

#define without_head right_without_head
#include "tests/course/09_heads/exercise.h"
#undef without_head

namespace exercise {

inline void without_head(Tensor wo, int64_t heads, int64_t head, const std::function<void()>& body) {
  const int64_t d = wo.dim(0) / heads;
  Tensor rows = wo.sliced(0, head * d, (head + 1) * d);
  const Tensor kept = rows.clone();
  rows.fill(0);
  body();
  rows.copy_(kept);
}

}  // namespace exercise
