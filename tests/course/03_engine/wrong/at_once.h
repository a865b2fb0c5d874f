// expect: expected the closure of c to run once, it ran 5 times
// A node passes on what it is sent at once, without waiting for its other consumers.
#pragma once
#include <braid/autograd.h>

#define backward right_backward
#include "tests/course/03_engine/exercise.h"
#undef backward

namespace exercise {

inline void push(const Value& node, const Tensor& dy) {
  node->gradient = node->gradient ? node->gradient + dy : dy;
  if (node->inputs.empty()) return;
  const std::vector<Tensor> sent = node->pull(dy);
  for (size_t i = 0; i < sent.size(); ++i) push(node->inputs[i], sent[i]);
}

inline void backward(const Value& y) { push(y, braid::ones(y->value.shape(), y->value.dtype())); }

}  // namespace exercise
