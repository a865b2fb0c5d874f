// The parameters of a sharded model as wholes, for a time in which every rank computes with samples of its own, as one
// process does: then no sum of a sample is cut by rank (training/trainer_strict.h).
//
//   tensor ranks     0    1               0      1
//   shards of w     [a]  [b]  --gather-> [a b]  [a b]     in the model; samples s and t
//   of samples s t  [a a][b b] <-------- [a b]  [a b]     gradients: every rank gets those of its shard
#pragma once
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "braid/models/model.h"
#include "braid/tensor/scoped_value.h"

namespace braid::models {

// The unsharded values of parameters. Collective over the tensor ranks.
std::vector<Tensor> whole_parameters(const Model& model, const std::vector<nn::NamedTensor>& parameters,
                                     const dist::Communicator& tensor);

class WholeParameters {
 public:
  // masters: the leaves of the model's parameters, in its order, of this rank's shards. The model computes with them or
  // with copies of another type. Collective over the tensor ranks, as take_gradients().
  WholeParameters(Model& model, const std::vector<nn::NamedTensor>& masters, const dist::Communicator& tensor);
  ~WholeParameters();  // puts the shards back
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;

  // Before each forward pass, after MasterWeights::attach_cast().
  void attach();
  // After backward(): what the masters get from the sample of each tensor rank, in the order of ranks; empty handles
  // where there is no gradient. All gradients are dropped.
  std::vector<std::vector<Tensor>> take_gradients();

  // Whether one lives in this thread. The functions of a model are then those of one process.
  static bool alive();

 private:
  struct Parameter {
    Tensor master, used;       // used: by the model outside of this scope
    const dist::Shard* shard;  // null: the parameter is whole by itself
    Tensor whole, leaf;  // values as the model computes with them; what collects the gradient, f32 for a 16-bit master
  };
  Model& model_;
  dist::Communicator tensor_;
  std::vector<Parameter> parameters_;
  ScopedValue<bool> alive_;
};

}  // namespace braid::models
