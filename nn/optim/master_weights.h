// Mixed precision (Micikevicius et al. 2018). The optimizer trains master weights: f32 leaves with f32 gradients, f32
// moments, f32 in checkpoints. The module computes with copies of them in a 16-bit type, made once per update.
//
//   master (f32, leaf) --cast, once per update--> the module's parameter (bf16) --> forward
//   master's gradient (f32) += f32(dw)  <-------- dw (bf16, summed in f32 and rounded once) <-- backward
//
// The cast is recorded, so backward() reaches the masters by itself: hooks, accumulation over micro-batches and
// reductions over ranks deal with f32 leaves. If a step has a single pass, dw stays in bf16 and the optimizer reads it
// so (Optimizer::set_copies); its kernel also writes the copies.
//
// Parameters of 16 bits have no master: they are trained themselves, with gradients that are summed in f32, for an
// optimizer that rounds at random (stochastic_rounding.h).
//
// Copies of consecutive matrices of one shape are adjacent in memory, so that one product can take both
// (autograd/ops.h, linear_pair).
#pragma once
#include <functional>

#include "braid/nn/module.h"

namespace braid::nn {

class MasterWeights final : public Module {
 public:
  // Takes the module's parameters as masters and makes leaves of them. Each one whose name passes `to_compute_dtype` is
  // replaced in the module by a copy of type `compute`; the others, and those already of that type, stay shared by
  // both. The module must outlive this object.
  using Rule = std::function<bool(const std::string& name)>;
  MasterWeights(Module& module, DType compute, const Rule& to_compute_dtype);

  // Casts the masters into the copies: after an optimizer step, and after masters were loaded.
  void refresh();
  // For an optimizer that writes copies: for each of these tensors its copy, if it is a master that has one, else an
  // empty handle. refresh_others() casts all but these.
  std::vector<Tensor> copies_of(const std::vector<NamedTensor>& parameters);
  void refresh_others();
  // Records the casts anew, so that gradients of the module's parameters reach the masters: before each forward pass
  // that is differentiated. The parameters may be used any number of times, but in one backward() only. only_pass: no
  // other gradient is added to those of this pass, which may then stay in the type of the copies.
  void attach_cast(bool only_pass = false);

  void visit(Visitor& v) const override;  // the masters, named like the module's parameters

 private:
  struct Entry {
    std::string name;
    Tensor master;
    Tensor copy;  // without history; empty where the module uses the master itself
    bool written_by_optimizer = false;
  };
  Module& module_;
  std::vector<Entry> entries_;
};

}  // namespace braid::nn
