#include "braid/models/whole_parameters.h"

#include <utility>

#include "braid/autograd/record.h"
#include "braid/distributed/parallel/data_parallel.h"
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

std::vector<Tensor> whole_parameters(const Model& model, const std::vector<nn::NamedTensor>& parameters,
                                     const dist::Communicator& tensor) {
  std::vector<Tensor> whole;
  std::vector<std::pair<size_t, dist::Work>> sent;  // all at once: there may be hundreds of small ones
  for (const nn::NamedTensor& p : parameters) {
    whole.push_back(p.value.detach());
    if (const dist::Shard* shard = model.shard_of(p.name))
      sent.emplace_back(whole.size() - 1, tensor.start_all_gather(whole.back(), shard->axis, shard->partition));
  }
  for (auto& [i, work] : sent) whole[i] = work.wait();
  return whole;
}

bool WholeParameters::alive() { return one_lives; }

WholeParameters::WholeParameters(Model& model, const std::vector<nn::NamedTensor>& masters,
                                 const dist::Communicator& tensor)
    : model_(model), tensor_(tensor), alive_(one_lives, true) {
  const MemoryScope scope(MemoryUse::weights);
  const std::vector<nn::NamedTensor> used = nn::parameters(model);
  check(used.size() == masters.size(), "whole_parameters", "needs a master of each parameter of the model");
  const std::vector<Tensor> whole = whole_parameters(model, used, tensor);
  for (size_t i = 0; i < used.size(); ++i) {
    const Tensor& master = masters[i].value;
    Parameter p{master, used[i].value, model.shard_of(used[i].name), whole[i], master};
    if (p.shard) {
      const DType sums = accumulate_type(master.dtype());
      p.leaf = p.whole.dtype() == sums ? p.whole.detach() : leaf_like(p.whole, sums);
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
  std::vector<std::vector<Tensor>> of_samples(static_cast<size_t>(ranks), std::vector<Tensor>(parameters_.size()));
  std::vector<std::pair<size_t, dist::Work>> sent;
  int64_t bytes = 0;  // under way
  const auto receive = [&] {
    for (auto& [i, work] : sent) {
      const Tensor g = work.wait();
      for (int r = 0; r < ranks; ++r) {
        const Tensor part = g.sliced(0, r, r + 1).reshaped(parameters_[i].master.shape());
        of_samples[static_cast<size_t>(r)][i] = ranks > 1 ? part.clone() : part;
      }
    }
    sent.clear(), bytes = 0;
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    Tensor g = requires_grad(p.leaf) ? grad(p.leaf) : Tensor();
    if (!g) continue;
    zero_grad(p.leaf);
    bytes += g.numel() * size_of(g.dtype());
    g = g.unsqueezed(0);
    sent.emplace_back(i, p.shard ? tensor_.start_all_to_all(g, p.shard->axis + 1, p.shard->partition, 0, samples)
                                 : tensor_.start_all_gather(g, 0, samples));
    if (bytes >= dist::kBucketBytes) receive();
  }
  receive();
  return of_samples;
}

}  // namespace braid::models
