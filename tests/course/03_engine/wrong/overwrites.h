// expect: a b \+ a, gradient of input 0, element 0 in row-major order: expected 4, found
// What arrives at a node takes the place of what was there: a lost +=.
#pragma once
#include <braid/autograd.h>

#define backward right_backward
#include "tests/course/03_engine/exercise.h"
#undef backward

namespace exercise {

inline void backward(const Value& y) {
  std::vector<Value> stack{y};
  y->gradient = braid::ones(y->value.shape(), y->value.dtype());
  while (!stack.empty()) {
    const Value node = stack.back();
    stack.pop_back();
    if (node->inputs.empty()) continue;
    const std::vector<Tensor> sent = node->pull(node->gradient);
    for (size_t i = 0; i < sent.size(); ++i) {
      node->inputs[i]->gradient = sent[i];
      stack.push_back(node->inputs[i]);
    }
  }
}

}  // namespace exercise
