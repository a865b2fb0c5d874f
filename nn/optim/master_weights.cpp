#include "braid/nn/optim/master_weights.h"

#include <algorithm>

#include "braid/autograd/ops.h"

namespace braid::nn {

MasterWeights::MasterWeights(Module& module, DType compute, const Rule& to_compute_dtype) : module_(module) {
  MemoryScope scope(MemoryUse::weights);
  require_grad(module);
  for (const NamedTensor& p : parameters(module)) entries_.push_back({p.name, p.value, {}});
  const auto is_cast = [&](const Entry& e) { return e.master.dtype() != compute && to_compute_dtype(e.name); };
  for (size_t first = 0, end = 0; first < entries_.size(); first = end) {
    const Tensor& p = entries_[first].master;
    for (end = first + 1; end < entries_.size(); ++end) {
      const Entry& e = entries_[end];
      if (p.rank() != 2 || e.master.shape() != p.shape() || is_cast(e) != is_cast(entries_[first])) break;
    }
    if (!is_cast(entries_[first])) continue;
    const auto count = static_cast<int64_t>(end - first);
    const Tensor together = empty({count, p.numel()}, compute, p.device());
    for (int64_t i = 0; i < count; ++i)
      entries_[first + static_cast<size_t>(i)].copy = together.sliced(0, i, i + 1).reshaped(p.shape());
  }
  refresh();
  size_t next = 0;
  replace_parameters(module, [&](const std::string&, const Tensor& p) {
    const Entry& e = entries_[next++];
    return e.copy ? e.copy : p;
  });
}

void MasterWeights::refresh() {
  for (Entry& e : entries_) {
    if (e.copy) e.copy.copy_(e.master);
  }
}

std::vector<Tensor> MasterWeights::copies_of(const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> copies;
  for (const NamedTensor& p : parameters) {
    const auto entry = std::ranges::find_if(entries_, [&](const Entry& e) { return e.master.id() == p.value.id(); });
    copies.push_back(entry == entries_.end() ? Tensor() : entry->copy);
    if (copies.back()) entry->written_by_optimizer = true;
  }
  return copies;
}

void MasterWeights::refresh_others() {
  for (Entry& e : entries_) {
    if (e.copy && !e.written_by_optimizer) e.copy.copy_(e.master);
  }
}

void MasterWeights::attach_cast(bool only_pass) {
  size_t next = 0;
  replace_parameters(module_, [&](const std::string&, const Tensor& p) {
    const Entry& e = entries_[next++];
    const DType to = accumulate_type(e.master.dtype());
    const bool alone = !e.copy && e.master.dtype() != to;  // a weight of 16 bits without a master
    if (!e.copy && !alone) return p;
    const bool as_it_is = only_pass && (alone || e.written_by_optimizer);
    return record("cast", alone ? e.master.detach() : e.copy, {e.master},
                  differentiable([as_it_is, from = to](const Tensor& dy) -> Grads {
                    if (recording()) return {cast(dy, from)};
                    return {as_it_is ? dy : dy.to(from)};
                  }));
  });
}

void MasterWeights::visit(Visitor& v) const {
  for (const Entry& e : entries_) v(e.name, e.master);
}

}  // namespace braid::nn
