#include "braid/nn/optim/master_weights.h"

#include "braid/autograd/record.h"

namespace braid::nn {

MasterWeights::MasterWeights(Module& module, DType compute, const Rule& to_compute_dtype) : module_(module) {
  MemoryScope scope(MemoryUse::weights);
  require_grad(module);
  Visitor collect([&](const std::string& name, Tensor& p) {
    Entry entry{name, p, {}};
    if (p.dtype() != compute && to_compute_dtype(name)) p = entry.copy = p.to(compute);
    entries_.push_back(std::move(entry));
  });
  module.visit(collect);
}

void MasterWeights::refresh() {
  for (Entry& e : entries_) {
    if (e.copy) e.copy.copy_(e.master);
  }
}

void MasterWeights::attach_cast() {
  size_t next = 0;
  Visitor attach([&](const std::string&, Tensor& p) {
    const Entry& e = entries_[next++];
    if (!e.copy) return;
    p = record("cast", e.copy, {e.master},
               [from = e.master.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
  });
  module_.visit(attach);
}

void MasterWeights::visit(Visitor& v) {
  for (Entry& e : entries_) v(e.name, e.master);
}

}  // namespace braid::nn
