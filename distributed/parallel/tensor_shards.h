// Tensor parallelism: the shards of a module's parameters, by the rules that its layers declare in visit
// (nn::ShardRule).
//
//   wqkv                 rows, by heads (queries | keys | values each)     column-parallel in Megatron-LM's words
//                        grouped key/value heads: by their own heads, see head_shards.h
//   wo                   columns, by heads                                 row-parallel
//   dyn_w_proj.*         by head groups where no group spans ranks, else the same on every rank
//   w1, w3 / w2          rows / columns, by hidden units
//   embeddings, output   rows, by the vocabulary
//   all others           norms, mg, biases after a sum: the same on every rank
//
// A sharded layer is the layer of nn/ whose parameters were replaced by their shards (shard_parameters()), called with
// a ShardContext (sequence_parallel.h, replicated_rows.h).
#pragma once
#include <map>
#include <string>

#include "braid/distributed/sharding/shard_spec.h"
#include "braid/nn/module.h"

namespace braid::dist {

using ShardMap = std::map<std::string, Shard>;  // by parameter name; parameters without an entry are not sharded

// The shards of a complete module over `ranks` tensor ranks; none over one rank. Error(setting) when a parameter has
// fewer units than there are ranks.
ShardMap tensor_shards(const nn::Module& module, int ranks);
// Replaces the complete parameters of a module by the shards of `rank`. Returns tensor_shards().
ShardMap shard_parameters(nn::Module& module, int ranks, int rank);

}  // namespace braid::dist
