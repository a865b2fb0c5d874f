#include "braid/distributed/parallel/tensor_shards.h"

namespace braid::dist {

HeadSplit split_heads(const nn::AttentionOptions& o, int ranks) {
  check(o.heads >= ranks, ErrorKind::setting, [&] {
    return "parallel.tensor = " + std::to_string(ranks) + " is more than the model's " + std::to_string(o.heads) +
           " heads: expected at most one process per head";
  });
  if (!o.compose) return {true, even_partition(o.heads, ranks), {}};
  int64_t G = o.composition_options.groups;
  if (G % ranks != 0) return {false, even_partition(o.heads, ranks), {}};
  Partition groups = even_partition(G, ranks);
  return {true, scale_partition(groups, o.heads / G), groups};
}

ShardMap attention_shards(const nn::AttentionOptions& o, int ranks) {
  check(o.kv_heads == 0 || o.kv_heads == o.heads, ErrorKind::setting, [] {
    return std::string(
        "grouped key/value heads cannot be split over processes (no published DCFormer has them, and the model "
        "format rejects them); set parallel.tensor and parallel.context to 1");
  });
  HeadSplit split = split_heads(o, ranks);
  Partition features = scale_partition(split.heads, o.head_dim > 0 ? o.head_dim : o.width / o.heads);
  ShardMap shards{{"wqkv.weight", {0, repeat_partition(features, 3)}},
                  {"wqkv.bias", {0, repeat_partition(features, 3)}},
                  {"wo.weight", {1, features}}};
  if (o.compose && split.whole_groups) {
    for (auto& [name, axis] : {std::pair{"dw1", 1}, {"qkw", 0}, {"dd", 1}, {"pre_proj.w", 0}, {"post_proj.w", 0}})
      shards[std::string("dyn_w_proj.") + name] = {axis, split.groups};
  }
  return shards;
}

namespace {
// Hidden units of the feed-forward layer; gated blocks stay together.
Partition hidden_units(const nn::BlockOptions& o, int ranks) {
  int64_t gates = o.swiglu ? o.gates : 0, units = gates > 0 ? gates : o.hidden;
  check(units >= ranks, ErrorKind::setting, [&] {
    return "parallel.tensor = " + std::to_string(ranks) + " is more than the " + std::to_string(units) +
           (gates > 0 ? " gated blocks" : " hidden units") + " of the feed-forward layer";
  });
  return scale_partition(even_partition(units, ranks), o.hidden / units);
}
}  // namespace

ShardMap block_shards(const nn::BlockOptions& o, int ranks) {
  ShardMap shards;
  for (const auto& [name, shard] : attention_shards(o.attention, ranks)) shards["attention." + name] = shard;
  Partition hidden = hidden_units(o, ranks);
  for (const char* name : {"w1.weight", "w1.bias", "w3.weight", "w3.bias"})
    shards[std::string("feed_forward.") + name] = {0, hidden};
  shards["feed_forward.w2.weight"] = {1, hidden};
  return shards;
}

void shard_parameters(nn::Module& module, const ShardMap& shards, const std::string& prefix, int rank) {
  nn::replace_parameters(module, [&](const std::string& name, const Tensor& p) {
    auto at = shards.find(prefix + name);
    if (at == shards.end() || at->second.partition.ranks() == 1) return p;
    const auto& [axis, partition] = at->second;
    return nn::parameter(gather_ranges(p.detach(), axis, partition.of(rank)));
  });
}

}  // namespace braid::dist
