#include "braid/nn/optim/master_weights.h"

#include "braid/autograd/record.h"

namespace braid::nn {

MasterWeights::MasterWeights(Module& module, DType compute, const Rule& shortened) : module_(module) {
  MemoryScope scope(MemoryUse::weights);
  require_grad(module);
  Visitor take([&](const std::string& name, Tensor& p) {
    Entry entry{name, p, {}};
    if (p.dtype() != compute && shortened(name)) p = entry.copy = p.to(compute);
    entries_.push_back(std::move(entry));
  });
  module.visit(take);
}

void MasterWeights::refresh() {
  for (Entry& e : entries_) {
    if (e.copy) e.copy.copy_(e.master);
  }
}

void MasterWeights::connect() {
  size_t next = 0;
  Visitor give([&](const std::string&, Tensor& p) {
    const Entry& e = entries_[next++];
    if (!e.copy) return;
    p = record("cast", e.copy, {e.master},
               [from = e.master.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
  });
  module_.visit(give);
}

void MasterWeights::visit(Visitor& v) {
  for (Entry& e : entries_) v(e.name, e.master);
}

}  // namespace braid::nn
