// The cost of training a model by its configuration alone, without building it: ModelSpec::size(), forward_flops(),
// training_memory() and step_volume() (model_spec.h).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "braid/models/cost/model_info.h"
#include "braid/nn/module.h"

namespace braid::models {

struct ModelSize {
  int64_t parameters = 0;           // elements
  int64_t non_embedding = 0;        // without embedding tables and output projection of a vocabulary
  int64_t layers = 0;               // blocks; 0: the model has none
  std::vector<InfoRow> parts = {};  // further counts that the family reports
};

// Sizes of a process mesh, and the place of a rank in it (distributed/comm/process_mesh.h).
struct MeshShape {
  int64_t data = 1, context = 1, tensor = 1;
  int64_t ranks() const { return data * context * tensor; }
};
struct MeshCoord {
  int64_t data = 0, context = 0, tensor = 0;
};

struct TrainingSetup {
  int64_t batch = 1;                // samples of a micro-batch on one data rank
  int64_t seq_len = 1;              // tokens of a sample
  int64_t bytes_per_element = 4;    // of the arithmetic; 2: mixed precision with f32 masters
  int64_t optimizer_moments = 2;    // Adam 2, SGD with momentum 1, without 0
  bool recompute = false;           // each block keeps only its input and is recomputed
  int64_t attention_workspace = 0;  // bytes of scores that a GPU may hold at a time; 0: on the CPU, which holds none
  int64_t logit_rows = 1024;        // rows of logits that exist at a time (linear_cross_entropy)
  MeshShape mesh = {};
  // A CPU computes results of norms, gates and rotations again in the backward pass (autograd/saved.h); a GPU keeps
  // them.
  bool keeps_all() const { return attention_workspace > 0; }
};
// Bytes of one process at the worst moment of a step; over a mesh of the first rank, whose shards are the largest.
struct TrainingMemory {
  double weights = 0, gradients = 0, optimizer = 0;  // weights: masters and their copies
  double activations = 0;                            // saved for the backward pass
  double working = 0;                                // the largest temporary
  double total() const { return weights + gradients + optimizer + activations + working; }
};

struct StepShape {
  std::vector<int64_t> samples;  // of this data rank, one entry per micro-batch
  int64_t seq_len = 1;
  int64_t bytes_per_element = 4;  // of the arithmetic; 2: mixed precision, whose gradients and weights travel in f32
  bool recompute = false;         // blocks send their forward pass twice
  // Whose gradients are sent: those of this module that are `trained`, by default all of the model.
  const nn::Module* module = nullptr;
  std::function<bool(const std::string& parameter)> trained = {};
};
// Bytes that one rank sends in a step, by group and collective. The few values that decisions need (tokens, loss, norm)
// are not counted.
struct StepVolume {
  dist::CommStats tensor, context, replicas, world;
  int64_t total() const { return tensor.total() + context.total() + replicas.total() + world.total(); }
};

// Elements (not bytes) of the parameters of a complete model on one tensor rank.
struct RankParameters {
  int64_t held = 0;   // weights, and as many gradients
  int64_t owned = 0;  // those whose optimizer state it keeps (rounded up)
};
RankParameters rank_parameters(const nn::Module& model, const MeshShape& mesh, int64_t tensor_rank);

// Adds gradients that go to their owners and parameters that come back (distributed/parallel/data_parallel.h).
void add_gradient_volume(StepVolume& volume, const nn::Module& model, const MeshShape& mesh, const MeshCoord& rank,
                         const StepShape& step);

}  // namespace braid::models
