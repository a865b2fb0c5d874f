// What a model tells its optimizer: the matrices that are updated as wholes, who holds their shards, rates of muP.
#include "braid/distributed/parallel/matrix_owners.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/mup.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/registry.h"

namespace braid::models {

nn::OptimizerOptions options_for(const Model& model, nn::OptimizerOptions options) {
  if (nn::takes_matrices(options)) {
    std::vector<nn::ParameterGroup> groups{{.pattern = "*.lora_?.weight", .elementwise = true}};
    for (const std::string& pattern : model.elementwise_parameters())
      groups.push_back({.pattern = pattern, .elementwise = true});
    options.groups.insert(options.groups.begin(), groups.begin(), groups.end());
  }
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  if (const auto base = spec->mup_base()) options.groups = with_mup_rates(*spec, *base, options);
  return options;
}

// Those that the optimizer takes as wholes, with the tensor ranks of this one as holders of the other shards.
std::shared_ptr<const nn::WholeMatrices> Trainer::matrices() const {
  std::vector<dist::MatrixOwners::Sharded> sharded;
  for (const nn::NamedTensor& p : optimizer_->parameters()) {
    const dist::Shard* shard = model_.shard_of(p.name);
    if (shard && nn::takes_as_matrix(optimizer_->options(), p)) sharded.push_back({p.name, *shard, unsharded_shape(p)});
  }
  return std::make_shared<dist::MatrixOwners>(nn::shard_rules(model_), sharded, mesh_.tensor);
}

}  // namespace braid::models
