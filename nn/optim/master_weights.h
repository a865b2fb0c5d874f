// Mixed precision. What is trained are master weights: f32 leaves with f32 gradients, f32 moments, f32 in checkpoints.
// What the module computes with are copies of them in a shorter type, made once per update.
//
//   master (f32, leaf) --cast, once per update--> the module's parameter (bf16) --> forward
//   master's gradient (f32) += f32(dw)  <-------- dw (bf16, summed in f32 and rounded once) <-- backward
//
// The cast is recorded, so backward() reaches the masters by itself: hooks, accumulation over micro-batches and
// reductions over ranks see nothing but f32 leaves.
#pragma once
#include <functional>

#include "braid/nn/module.h"

namespace braid::nn {

class MasterWeights final : public Module {
 public:
  // Takes the module's parameters as masters and makes leaves of them. Those for which `shortened` says so are replaced
  // in the module by copies of type `compute`; the others stay shared by both, as all do when they are of that type
  // already. The module must outlive this object.
  using Rule = std::function<bool(const std::string& name)>;
  MasterWeights(Module& module, DType compute, const Rule& shortened);

  // Brings the copies up to date: after an optimizer step, and after masters were loaded.
  void refresh();
  // Before each forward pass that is to be differentiated: gives the module's parameters a fresh history of their cast.
  // A parameter may be used any number of times, but for one backward().
  void connect();

  void visit(Visitor& v) const override;  // the masters, named like the module's parameters

 private:
  struct Entry {
    std::string name;
    Tensor master;
    Tensor copy;  // without history; empty where the module uses the master itself
  };
  Module& module_;
  std::vector<Entry> entries_;
};

}  // namespace braid::nn
