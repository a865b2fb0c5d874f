// The parts of the engine that recompute() and ops with several results are built on. For autograd/*.cpp only.
#pragma once
#include "braid/autograd/record.h"

namespace braid::detail {

// The tensors with a gradient that ops take on this thread while recording is off and this object lives: those that a
// segment captured, parameters or results of ops before it. The graph lists them among the segment's inputs, so that a
// leaf is complete, and its hook called, when the last segment that uses it has run.
class TensorsUsed {
 public:
  TensorsUsed();
  const std::vector<Tensor>& list() const { return list_; }
  static void note(Inputs inputs);  // called by recording()

 private:
  static constinit thread_local TensorsUsed* current;
  std::vector<Tensor> list_;
  ScopedValue<TensorsUsed*> before_;
};

// backward() in the closure of a segment: the graph behind y joins the pass that runs the closure. The captured tensors
// get their gradients there, so the closure returns none for them.
void backward_in_segment(const Tensor& y, const Tensor& dy, const std::vector<Tensor>& captured);

// In a closure: the gradients that the results of an op have left in this pass for the op's own closure.
Grads& arrived_at(Node* op);

}  // namespace braid::detail
