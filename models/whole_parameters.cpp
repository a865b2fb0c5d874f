#include "braid/models/whole_parameters.h"

#include "braid/autograd/record.h"
#include "braid/tensor/memory.h"

namespace braid::models {

namespace {
constinit thread_local bool one_lives = false;

// A leaf that has no memory of its own: it only collects a gradient.
Tensor leaf_like(const Tensor& values, DType type) {
  Tensor leaf = full({}, 0, type, values.device()).expanded(values.shape());
  return require_grad(leaf);
}
}  // namespace

Tensor whole_parameter(const Model& model, const nn::NamedTensor& parameter, const dist::Communicator& tensor) {
  const dist::Shard* shard = model.shard_of(parameter.name);
  const Tensor own = parameter.value.detach();
  return shard ? tensor.all_gather(own, shard->axis, shard->partition) : own;
}

bool WholeParameters::alive() { return one_lives; }

WholeParameters::WholeParameters(Model& model, const std::vector<nn::NamedTensor>& masters,
                                 const dist::Communicator& tensor)
    : model_(model), tensor_(tensor), alive_(one_lives, true) {
  const MemoryScope scope(MemoryUse::weights);
  const std::vector<nn::NamedTensor> used = nn::parameters(model);
  check(used.size() == masters.size(), "whole_parameters", "needs a master of each parameter of the model");
  for (size_t i = 0; i < used.size(); ++i) {
    const Tensor& master = masters[i].value;
    Parameter p{master, used[i].value, model.shard_of(masters[i].name), {}, master};
    if (p.shard) {
      p.whole = whole_parameter(model, used[i], tensor);
      p.leaf = p.whole.dtype() == master.dtype() ? p.whole.detach() : leaf_like(p.whole, master.dtype());
      require_grad(p.leaf, requires_grad(master));
    }
    parameters_.push_back(std::move(p));
  }
}

WholeParameters::~WholeParameters() {
  size_t next = 0;
  nn::replace_parameters(model_, [&](const std::string&, const Tensor&) { return parameters_[next++].used; });
}

void WholeParameters::attach() {
  size_t next = 0;
  nn::replace_parameters(model_, [&](const std::string&, const Tensor& now) {
    const Parameter& p = parameters_[next++];
    if (!p.shard) return now;
    if (p.whole.dtype() == p.leaf.dtype()) return p.leaf;
    return record("cast", p.whole, {p.leaf},
                  [from = p.leaf.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
  });
}

std::vector<std::vector<Tensor>> WholeParameters::take_gradients() {
  const MemoryScope scope(MemoryUse::gradients);
  const int ranks = tensor_.size();
  const dist::Partition samples = dist::even_partition(ranks, ranks);
  std::vector<std::vector<Tensor>> of_samples(static_cast<size_t>(ranks));
  for (const Parameter& p : parameters_) {
    Tensor g = requires_grad(p.leaf) ? grad(p.leaf) : Tensor();
    if (g) {
      zero_grad(p.leaf);
      g = g.unsqueezed(0);
      g = p.shard ? tensor_.all_to_all(g, p.shard->axis + 1, p.shard->partition, 0, samples)
                  : tensor_.all_gather(g, 0, samples);
    }
    for (int r = 0; r < ranks; ++r) {
      const Tensor part = g ? g.sliced(0, r, r + 1).reshaped(p.master.shape()) : g;
      of_samples[static_cast<size_t>(r)].push_back(g && ranks > 1 ? part.clone() : part);
    }
  }
  return of_samples;
}

}  // namespace braid::models
