// expect: crashed: Segmentation fault
// The order is found by a function that calls itself: right, until the graph is deep.
#pragma once
#include <braid/autograd.h>

#define backward right_backward
#include "tests/course/03_engine/exercise.h"
#undef backward
#include <unordered_set>

namespace exercise {

inline void visit(const Value& node, std::unordered_set<Node*>& met, std::vector<Value>& order) {
  if (!met.insert(node.get()).second) return;
  for (const Value& input : node->inputs) visit(input, met, order);
  order.push_back(node);
}

inline void backward(const Value& y) {
  std::unordered_set<Node*> met;
  std::vector<Value> order;
  visit(y, met, order);
  std::unordered_map<Node*, Tensor> arrived{{y.get(), braid::ones(y->value.shape(), y->value.dtype())}};
  for (size_t i = order.size(); i-- > 0;) {
    const Value& node = order[i];
    const Tensor dy = arrived[node.get()];
    node->gradient = node->gradient ? node->gradient + dy : dy;
    if (node->inputs.empty()) continue;
    const std::vector<Tensor> sent = node->pull(dy);
    for (size_t j = 0; j < sent.size(); ++j) {
      Tensor& sum = arrived[node->inputs[j].get()];
      sum = sum ? sum + sent[j] : sent[j];
    }
  }
}

}  // namespace exercise
