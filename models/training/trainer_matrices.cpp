// Matrices that the optimizer updates as wholes: which they are, and who holds their shards.
#include "braid/distributed/parallel/matrix_owners.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/registry.h"

namespace braid::models {

nn::OptimizerOptions options_for(const Model& model, nn::OptimizerOptions options) {
  if (!nn::takes_matrices(options)) return options;
  std::vector<nn::ParameterGroup> groups{{.pattern = "*.lora_?.weight", .elementwise = true}};
  for (const std::string& pattern : model.elementwise_parameters())
    groups.push_back({.pattern = pattern, .elementwise = true});
  options.groups.insert(options.groups.begin(), groups.begin(), groups.end());
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
