// The bytes that the ranks of a mesh send in a training step, computed from the configuration alone; a test holds them
// equal to the bytes that are counted. The formulas are explained in distributed/README.md.
#pragma once
#include "braid/distributed/comm/communicator.h"
#include "braid/models/dcformer/config.h"

namespace braid::models {

struct LayoutSizes {
  int64_t data = 1, context = 1, tensor = 1;
};
struct RankPlace {
  int64_t data = 0, context = 0, tensor = 0;
};

struct StepShape {
  std::vector<int64_t> samples;  // of this data rank, one entry per micro-batch
  int64_t seq_len = 1;
  int64_t bytes_per_number = 4;  // of the arithmetic; 2: mixed precision, whose gradients and weights travel in f32
  bool checkpoint_activations = false;  // blocks send their forward pass twice
};

// Bytes sent by one rank, by group and collective. The few values that decisions need (tokens, loss, norm) are not
// counted.
struct StepVolume {
  dist::CommStats tensor, context, replicas, world;
  int64_t total() const { return tensor.total() + context.total() + replicas.total() + world.total(); }
};
StepVolume step_volume(ModelConfig config, const LayoutSizes& sizes, const RankPlace& place, const StepShape& step);

// Numbers (not bytes) of the model on one rank.
struct RankParameters {
  int64_t held = 0;   // weights, and as many gradients
  int64_t owned = 0;  // those whose optimizer state it keeps (rounded up)
};
RankParameters rank_parameters(ModelConfig config, const LayoutSizes& sizes, int64_t tensor_rank);

// Numbers that the attention of a layer has from other ranks and from itself for all keys that this rank's queries see,
// kept for backward, per sequence of this rank. 0 where nothing comes from others.
int64_t gathered_by_attention(const ModelConfig& config, const LayoutSizes& sizes, const RankPlace& place,
                              int64_t layer, int64_t seq_len);

}  // namespace braid::models
