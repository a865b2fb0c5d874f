// Weights and optimizer state as the ranks of a job hold them. Every element of the model belongs to exactly one rank,
// its owner (distributed/parallel/data_parallel.h), so the ranks' local states tile the state of the model.
#pragma once
#include <string>
#include <vector>

#include "braid/distributed/sharding/partition.h"
#include "braid/tensor/tensor.h"

namespace braid::models {

// The elements of a parameter, moment or gradient that one rank owns.
struct LocalTensor {
  std::string name;
  DType dtype;
  Shape shape;                    // of the unsharded tensor
  std::vector<dist::Span> spans;  // where `values` are in the flattened unsharded tensor
  Tensor values;                  // contiguous, shares the memory of model and optimizer; empty where none is owned
};

struct LocalState {
  // The same names in the same order on every rank. adapter: the parameters of LoRA (lora.h). optimizer: "steps", then
  // for each parameter its trained weights, if `weights` has averages, and its moments.
  std::vector<LocalTensor> weights, adapter, optimizer;
};

}  // namespace braid::models
