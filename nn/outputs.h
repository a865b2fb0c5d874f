// The outputs of modules, watched by the names of the modules: forward hooks.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "braid/nn/module.h"
#include "braid/tensor/scoped_value.h"

namespace braid::nn {

//     const ObserveOutputs watch(model, [&](const std::string& name, const Tensor& y) { seen[name] = y; });
//     model(x);   // seen["layers.0.norm"], ...
//
// While it lives, passes of this thread through modules below m call receive(name, output) in the order of computation,
// once for each call of a module. The output keeps its history: grad(loss, {seen["norm"]}) is its gradient. A module
// reports when its operator() returns output(*this, y), as the layers of this library do that map a tensor to a tensor;
// of fused ops the result alone (not the norms of queries and keys of attention). m must not be moved meanwhile. Inside
// another one on the same thread it takes its place. Segments of recompute() report again when they are computed again.
class ObserveOutputs {
 public:
  using Receive = std::function<void(const std::string& name, const Tensor& output)>;
  ObserveOutputs(const Module& m, Receive receive);

 private:
  friend Tensor output(const Module& module, Tensor y);
  void report(const Module& module, const Tensor& y) const;
  static constinit thread_local const ObserveOutputs* current;

  std::map<const Module*, std::string> names_;
  Receive receive_;
  ScopedValue<const ObserveOutputs*> before_;
};

// y, the output of the module, which is reported if somebody watches it.
Tensor output(const Module& module, Tensor y);

}  // namespace braid::nn
