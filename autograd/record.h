// Recording derivatives and running them.
//
// An op computes y and calls record(). The graph holds no values: what a backward closure captures is all that stays
// alive.
#pragma once
#include <functional>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "braid/autograd/closure.h"
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid {

// One per input, of its shape and type (f32 stands for 16 bits and they for it); an empty Tensor means "none".
using Grads = std::vector<Tensor>;
using Backward = std::function<Grads(const Tensor& dy)>;  // gradient of the result -> gradients of the inputs
// The same for an op with several results: one gradient per result, an empty Tensor for a result that nothing used.
using BackwardMany = std::function<Grads(const std::vector<Tensor>& dys)>;

namespace detail {
using Inputs = std::span<const Tensor>;
inline Inputs span_of(std::initializer_list<Tensor> list) { return {list.begin(), list.size()}; }

// In a closure: whether it may be called again (BackwardOptions::keep), so that it must leave what it saved as it is.
bool history_is_kept();
// Whether this thread executes a closure.
bool in_closure();

Tensor record(const char* op, Tensor y, Inputs inputs, Backward backward, ClosureTraits traits);
std::vector<Tensor> record_many(const char* op, std::vector<Tensor> ys, Inputs inputs, BackwardMany backward,
                                ClosureTraits traits);
}  // namespace detail

// Returns a new handle on y's storage that stores how to push a gradient back to `inputs`, or y itself when none of
// them requires a gradient. The closure F (differentiable() of closure.h marks it) is called as Backward says, with
// recording off, and is freed after one pass. It may capture y: the handle returned is a different one, without
// history, so no cycle can form. If it holds tensors, backward() throws when an input or the result has been written in
// place in the meantime: ids, masks and tables that it reads are inputs too, whose gradients are empty.
template <class F>
Tensor record(const char* op, Tensor y, std::span<const Tensor> inputs, F&& backward) {
  return detail::record(op, std::move(y), inputs, detail::closure_of(std::forward<F>(backward)), detail::traits<F>);
}
template <class F>
Tensor record(const char* op, Tensor y, std::initializer_list<Tensor> inputs, F&& backward) {
  return record(op, std::move(y), detail::span_of(inputs), std::forward<F>(backward));
}

// The same for an op with several results; F is called as BackwardMany says.
template <class F>
std::vector<Tensor> record_many(const char* op, std::vector<Tensor> ys, std::initializer_list<Tensor> inputs,
                                F&& backward) {
  return detail::record_many(op, std::move(ys), detail::span_of(inputs), detail::closure_of(std::forward<F>(backward)),
                             detail::traits<F>);
}

bool recording();  // whether it is on, on this thread; in a closure: whether its result will be differentiated again
// True when some input requires a gradient and recording is on: then an op must save what its derivative needs.
bool recording(std::span<const Tensor> inputs);
inline bool recording(std::initializer_list<Tensor> inputs) { return recording(detail::span_of(inputs)); }

// For an op that has no derivative: throws when x requires a gradient and recording is on.
void no_gradient(const char* op, const Tensor& x);

// Switches recording off on this thread while it lives.
class NoGrad {
 public:
  NoGrad();

 private:
  ScopedValue<bool> recording_;
};

// Switches recording on on this thread while it lives (recomputation inside a backward pass).
class EnableGrad {
 public:
  EnableGrad();

 private:
  ScopedValue<bool> recording_;
};

// f() with recording off:  Tensor y = no_grad([&] { return log(x); });
template <class F>
decltype(auto) no_grad(F&& f) {
  const NoGrad off;
  return std::forward<F>(f)();
}

// Makes x a leaf that collects a gradient (a parameter), or with on = false an ordinary tensor again. Returns x.
Tensor& require_grad(Tensor& x, bool on = true);
bool requires_grad(const Tensor& x);  // a leaf, or the result of an op recorded on one

// The gradient accumulated in a leaf; an empty Tensor when none has arrived. Gradients add up over backward() calls. A
// leaf owns its gradient: contiguous, and no memory shared with another gradient or with what backward() was given.
Tensor grad(const Tensor& leaf);
void set_grad(const Tensor& leaf, Tensor gradient);  // takes the handle; of f32 and 16 bits either has either
void zero_grad(const Tensor& leaf);

// Pushes dy (default: 1, for a tensor of one element) back from y to every leaf that it depends on. The history is used
// up, unless options say `keep`: a second call throws "[softmax] history already used".
struct BackwardOptions {
  bool keep = false;  // the history, so that backward() or grad() can use it again
};
void backward(const Tensor& y, Tensor dy = {}, BackwardOptions options = {});

// The gradients of y, or of sum(y dy), with respect to xs: leaves or results of recorded ops. Nothing is accumulated in
// leaves and no hook is called. Throws where y does not depend on one of xs, unless allow_unused.
struct GradOptions {
  Tensor dy = {};             // default: 1, for a y of one element
  bool keep = false;          // as of backward()
  bool create_graph = false;  // record the gradients' own computation, so that they can be differentiated; implies keep
  bool allow_unused = false;  // an empty Tensor where y does not depend on x
};
std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, GradOptions options = {});

}  // namespace braid
