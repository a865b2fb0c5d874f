// The cost of a model, traced: a step runs on a device without memory (tensor/trace_device.h), as one rank of a mesh
// whose other ranks do not exist (distributed/comm/counting_mesh.h), and what it does is counted.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "braid/distributed/comm/counting_mesh.h"
#include "braid/models/batch.h"
#include "braid/models/folders/lora.h"
#include "braid/models/training/objective.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/tensor/trace_device.h"

namespace braid::models {

class ModelSpec;

using dist::MeshCoord;
using dist::MeshShape;

struct TrainingSetup {
  std::vector<int64_t> samples = {1};  // of this rank, one entry per micro-batch
  int64_t accumulate = 1;              // how often these micro-batches are repeated
  int64_t seq_len = 1;                 // tokens of a sample; without effect where samples are no sequences
  DType compute = DType::f32;          // of the arithmetic; the masters of 16 bits are f32,
  bool masters = true;                 // or there are none (training/mixed_precision.md)
  std::shared_ptr<const Objective> objective = std::make_shared<Objective>();
  nn::OptimizerOptions optimizer = {};
  bool average = false;  // of the weights (training/weight_average.h)
  std::optional<LoraOptions> lora = {};
  bool recompute = false;
  double dropout = 0, z_loss = 0;   // Model::set_dropout(), set_z_loss()
  bool gpu = false;                 // the memory of a GPU: it keeps cheap results, and attention holds scores
  int64_t attention_workspace = 0;  // bytes of these scores; 0: the device's own choice
  bool copied_state = false;        // for checkpoints that are written beside the training (Snapshot::copy_tensors())
  MeshShape mesh = {};
  MeshCoord rank = {};  // the first one has the largest shards
};

// Bytes of one process at the worst moment of a step, which may lie in the forward pass, before there are gradients, or
// in the update, when activations are gone.
struct TrainingMemory {
  double weights = 0, gradients = 0, optimizer = 0;  // weights: masters, their copies and tables
  double activations = 0;                            // saved for the backward pass
  double working = 0;                                // temporaries, and the batch
  double max_gradients = 0, max_activations = 0;     // at their own worst moments
  double copied_state = 0;                           // on the CPU
  bool copied_here = false;                          // that is where the step computes
  double total() const {
    return weights + gradients + optimizer + activations + working + (copied_here ? copied_state : 0);
  }
};

// What a rank sends in a step, by group and collective.
struct StepVolume {
  dist::CommStats tensor, context, replicas, world, data;
  int64_t total() const { return tensor.total() + context.total() + replicas.total() + world.total() + data.total(); }
};

struct StepCost {
  TracedFlops flops;  // of this rank, with what is recomputed
  TrainingMemory memory;
  StepVolume volume;
};

// Error(setting) where the model cannot be sharded so, or trained with these settings.
StepCost trace_step(const ModelSpec& spec, const TrainingSetup& setup);

// Model::blank_batch() of a model that is not built.
Batch blank_batch(const ModelSpec& spec, int64_t samples, int64_t seq_len);

// FLOPs of the forward pass of a batch on one process, by default of one sample of Model::blank_batch().
// They read optimizer and lora of `setup`.
TracedFlops forward_flops(const ModelSpec& spec, const Batch& batch, const TrainingSetup& setup = {});
TracedFlops forward_flops(const ModelSpec& spec, int64_t seq_len);
// FLOPs of a step that learns from the batch, nothing recomputed.
TracedFlops training_flops(const ModelSpec& spec, const Batch& batch, const TrainingSetup& setup = {});

}  // namespace braid::models
