// Which parameters of a block are sharded over the tensor ranks, and along which axis: the plan of tensor parallelism.
//
//   wqkv                 rows, by heads (queries | keys | values each)     column-parallel in Megatron-LM's words
//   wo                   columns, by heads                                 row-parallel
//   dyn_w_proj.*         by head groups where no group spans ranks, else the same on every rank
//   w1, w3 / w2          rows / columns, by hidden units
//   all others           norms, mg, biases after a sum: the same on every rank
//
// A sharded layer is the layer of nn/ whose parameters were replaced by their shards (shard_parameters()), called with
// a ShardContext (sequence_parallel.h, replicated_rows.h).
#pragma once
#include <map>
#include <string>

#include "braid/distributed/sharding/shard_spec.h"
#include "braid/nn/transformer/block.h"

namespace braid::dist {

using ShardMap = std::map<std::string, Shard>;  // by parameter name; parameters without an entry are not sharded

// How heads are sharded.
struct HeadSplit {
  bool groups_stay_on_rank = true;  // no head group spans ranks: route (a) of nn/attention/attention.h, else route (b)
  Partition heads;                  // of N
  Partition groups;                 // of G; route (a) with composition only
};
// Error(setting) when there are fewer heads than ranks.
HeadSplit split_heads(const nn::AttentionOptions& options, int ranks);

// Error(setting) when there are more ranks than heads, hidden units or gated blocks, or grouped key/value heads.
ShardMap attention_shards(const nn::AttentionOptions& options, int ranks);
ShardMap block_shards(const nn::BlockOptions& options, int ranks);

// Replaces the complete parameters of a module that `shards` names by the shards of `rank`. prefix: of the names of the
// module's parameters in `shards`.
void shard_parameters(nn::Module& module, const ShardMap& shards, const std::string& prefix, int rank);

}  // namespace braid::dist
