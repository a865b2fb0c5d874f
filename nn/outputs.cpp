#include "braid/nn/outputs.h"

namespace braid::nn {

constinit thread_local const ObserveOutputs* ObserveOutputs::current = nullptr;

ObserveOutputs::ObserveOutputs(const Module& m, Receive receive)
    : receive_(std::move(receive)), before_(current, this) {
  check(bool(receive_), "observe_outputs", "needs a function");
  names_[&m] = "";
  Visitor v([](const std::string&, const Tensor&, const ShardRule&) {},
            [this](const std::string& name, const Module& child) { names_.try_emplace(&child, name); });
  m.visit(v);
}

void ObserveOutputs::report(const Module& module, const Tensor& y) const {
  const auto found = names_.find(&module);
  if (found != names_.end()) receive_(found->second, y);
}

Tensor output(const Module& module, Tensor y) {
  if (ObserveOutputs::current) ObserveOutputs::current->report(module, y);
  return y;
}

}  // namespace braid::nn
