#include "braid/nn/optim/master_weights.h"

#include "braid/autograd/record.h"

namespace braid::nn {

MasterWeights::MasterWeights(Module& module, DType compute, const Rule& to_compute_dtype) : module_(module) {
  MemoryScope scope(MemoryUse::weights);
  require_grad(module);
  replace_parameters(module, [&](const std::string& name, const Tensor& p) {
    Entry& entry = entries_.emplace_back(Entry{name, p, {}});
    if (p.dtype() != compute && to_compute_dtype(name)) entry.copy = p.detach().to(compute);
    return entry.copy ? entry.copy : p;
  });
}

void MasterWeights::refresh() {
  for (Entry& e : entries_) {
    if (e.copy) e.copy.copy_(e.master);
  }
}

void MasterWeights::attach_cast() {
  size_t next = 0;
  replace_parameters(module_, [&](const std::string&, const Tensor& p) {
    const Entry& e = entries_[next++];
    if (!e.copy) return p;
    return record("cast", e.copy, {e.master},
                  [from = e.master.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
  });
}

void MasterWeights::visit(Visitor& v) const {
  for (const Entry& e : entries_) v(e.name, e.master);
}

}  // namespace braid::nn
