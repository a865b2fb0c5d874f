// Recording and running derivatives.
//
// An op computes y and calls record(). The graph holds no values: what a backward closure captures is all that stays
// alive.
#pragma once
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

using Grads = std::vector<Tensor>;                        // one per input; an empty Tensor means "none"
using Backward = std::function<Grads(const Tensor& dy)>;  // gradient of the result -> gradients of the inputs

// Returns a new handle on y's storage that remembers how to push a gradient back to `inputs`, or y itself when nothing
// needs one. The closure may capture y: the handle returned is a different one, so no cycle can form. Closures run
// once, with recording off, and are then freed.
Tensor record(const char* op, Tensor y, std::initializer_list<Tensor> inputs, Backward backward);
Tensor record(const char* op, Tensor y, std::span<const Tensor> inputs, Backward backward);

// The same for any number of inputs, and recorded whenever recording is on, even if no input wants a gradient: for a
// segment whose closure reaches parameters of its own (checkpoint).
Tensor record_segment(const char* op, Tensor y, const std::vector<Tensor>& inputs, Backward backward);

// The same for an op with several results. `backward` gets one gradient per result; a result that nobody used comes as
// an empty Tensor.
using BackwardMany = std::function<Grads(const std::vector<Tensor>& dys)>;
std::vector<Tensor> record_many(const char* op, std::vector<Tensor> ys, std::initializer_list<Tensor> inputs,
                                BackwardMany backward);

// True when some input wants a gradient and recording is on: then an op must save what its derivative needs.
bool recording(std::initializer_list<Tensor> inputs);
bool recording(std::span<const Tensor> inputs);

// For an op that has no derivative: throws when x wants a gradient and recording is on.
void no_gradient(const char* op, const Tensor& x);

// Switches recording off on this thread while it lives.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// Switches recording on on this thread while it lives (recomputation inside a backward pass).
class EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool before_;
};

// Marks x as a leaf whose gradient is wanted (a parameter). Returns x.
Tensor& require_grad(Tensor& x);
bool requires_grad(const Tensor& x);

// The gradient accumulated in a leaf; an empty Tensor when none has arrived. Gradients add up over backward() calls.
Tensor grad(const Tensor& leaf);
void set_grad(const Tensor& leaf, Tensor gradient);
void zero_grad(const Tensor& leaf);

// Pushes dy (default: 1, for a tensor of one element) back from y to every leaf that it depends on. The history is used
// up: a second call throws "[softmax] history already used".
void backward(const Tensor& y, Tensor dy = {});

// Calls hook(gradient) during backward() as soon as this leaf's gradient of the pass is complete (data parallelism
// starts its reduction there). The hook must not capture the leaf itself: that would be a cycle.
void on_grad(const Tensor& leaf, std::function<void(const Tensor& gradient)> hook);

}  // namespace braid
