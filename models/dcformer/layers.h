// From a model's configuration to the options and shards of its layers.
#pragma once
#include "braid/distributed/parallel/tensor_shards.h"
#include "braid/models/dcformer/config.h"
#include "braid/nn/nn.h"

namespace braid::models {

nn::Init table_init(const ModelConfig& config);  // token embedding and output projection
nn::BlockOptions block_options(const ModelConfig& config, int64_t layer, bool initialise);
nn::Rope make_rope(const ModelConfig& config, DType dtype, Device device);

// How the parameters are sharded over tensor ranks, by name; parameters without an entry are the same on every rank.
// Error(setting) when the model cannot be sharded so.
dist::ShardMap tensor_shards(const ModelConfig& config, int ranks);

}  // namespace braid::models
