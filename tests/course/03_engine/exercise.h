// A solution of exercise 3: the engine in one screen.
#pragma once
#include <braid/autograd.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

struct Node;
using Value = std::shared_ptr<Node>;

struct Node {
  Tensor value;
  Tensor gradient;
  std::vector<Value> inputs;
  std::function<std::vector<Tensor>(const Tensor& dy)> pull;
};

inline Value leaf(const Tensor& value) { return std::make_shared<Node>(Node{value, {}, {}, {}}); }

inline Value add(const Value& a, const Value& b) {
  const bool by_rows = a->value.rank() > b->value.rank();
  return std::make_shared<Node>(Node{a->value + b->value, {}, {a, b}, [by_rows](const Tensor& dy) {
                                       return std::vector<Tensor>{dy, by_rows ? braid::sum(dy, 0) : dy};
                                     }});
}

inline Value multiply(const Value& a, const Value& b) {
  return std::make_shared<Node>(Node{a->value * b->value, {}, {a, b}, [x = a->value, y = b->value](const Tensor& dy) {
                                       return std::vector<Tensor>{dy * y, dy * x};
                                     }});
}

inline Value matmul(const Value& a, const Value& b) {
  return std::make_shared<Node>(
      Node{braid::matmul(a->value, b->value), {}, {a, b}, [x = a->value, w = b->value](const Tensor& dy) {
             return std::vector<Tensor>{braid::matmul(dy, braid::transpose(w)), braid::matmul(braid::transpose(x), dy)};
           }});
}

inline Value relu(const Value& a) {
  return std::make_shared<Node>(Node{braid::relu(a->value), {}, {a}, [x = a->value](const Tensor& dy) {
                                       return std::vector<Tensor>{braid::where(gt(x, 0), dy, zeros_like(x))};
                                     }});
}

inline Value sum(const Value& a) {
  return std::make_shared<Node>(Node{braid::sum(a->value), {}, {a}, [shape = a->value.shape()](const Tensor& dy) {
                                       return std::vector<Tensor>{braid::expand(dy, shape)};
                                     }});
}

inline void backward(const Value& y) {
  std::unordered_map<Node*, int> consumers{{y.get(), 0}};  // which have not sent yet
  std::vector<Node*> stack{y.get()};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Value& input : node->inputs) {
      if (consumers[input.get()]++ == 0) stack.push_back(input.get());  // met for the first time
    }
  }
  std::unordered_map<Node*, Tensor> arrived{{y.get(), braid::ones(y->value.shape(), y->value.dtype())}};
  for (std::vector<Node*> ready{y.get()}; !ready.empty();) {
    Node* node = ready.back();
    ready.pop_back();
    const Tensor dy = arrived[node];
    arrived.erase(node);
    node->gradient = node->gradient ? node->gradient + dy : dy;
    if (node->inputs.empty()) continue;
    const std::vector<Tensor> sent = node->pull(dy);
    for (size_t i = 0; i < sent.size(); ++i) {
      Node* input = node->inputs[i].get();
      Tensor& sum = arrived[input];
      sum = sum ? sum + sent[i] : sent[i];
      if (--consumers[input] == 0) ready.push_back(input);
    }
  }
}

inline void clear(Value& y) {
  for (std::vector<Value> stack{std::exchange(y, nullptr)}; !stack.empty();) {
    const Value node = std::move(stack.back());
    stack.pop_back();
    if (node.use_count() > 1) continue;  // somebody else's, or met again later
    for (Value& input : node->inputs) stack.push_back(std::move(input));
    node->inputs.clear();
  }
}

}  // namespace exercise
