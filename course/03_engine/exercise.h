// Exercise 3: an engine. A Node holds a value and, made by an op, how to push a gradient back to its inputs.
//
// Values are Braid's tensors without history: inside your ops every tensor op is a plain computation.
#pragma once
#include <braid/autograd.h>

#include <functional>
#include <memory>
#include <vector>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

struct Node;
using Value = std::shared_ptr<Node>;

struct Node {
  Tensor value;
  Tensor gradient;            // empty until something arrives: if (gradient) asks
  std::vector<Value> inputs;  // none: a leaf
  // From the gradient of this value to those of the inputs, in their order. Must not hold its own node.
  std::function<std::vector<Tensor>(const Tensor& dy)> pull;
};

inline Value leaf(const Tensor& value) { return std::make_shared<Node>(Node{value, {}, {}, {}}); }

// a + b. Equal shapes, or a (B, N) and b (N), which is added to each row.
inline Value add(const Value& a, const Value& b) { throw course::NotWritten("add()"); }

// a b, element by element, of equal shapes.
inline Value multiply(const Value& a, const Value& b) { throw course::NotWritten("multiply()"); }

// The product of a (B, I) and b (I, O).
inline Value matmul(const Value& a, const Value& b) { throw course::NotWritten("matmul()"); }

// max(a, 0), with the derivative 0 where a is 0
inline Value relu(const Value& a) { throw course::NotWritten("relu()"); }

// The sum of all elements, of shape ().
inline Value sum(const Value& a) { throw course::NotWritten("sum()"); }

// From y, a value of one element, to every node that it depends on: sets y's gradient to 1, of y's type (ones_like()),
// and adds to the gradient of each input what it is sent. A node passes its gradient on once, when all its consumers in
// the graph of y have sent theirs. Calling it again on another graph with the same leaves adds to their gradients.
inline void backward(const Value& y) { throw course::NotWritten("backward()"); }

// Takes the graph of y apart, node by node, so that no destructor calls another a million times deep: a node that
// nobody else holds (use_count()) loses its inputs, one that somebody holds keeps them. y becomes a null pointer.
inline void clear(Value& y) { throw course::NotWritten("clear()"); }

}  // namespace exercise
