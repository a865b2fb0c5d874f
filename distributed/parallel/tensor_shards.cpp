#include "braid/distributed/parallel/tensor_shards.h"

namespace braid::dist {

ShardMap tensor_shards(const nn::Module& module, int ranks) {
  ShardMap shards;
  if (ranks == 1) return shards;
  const std::map<std::string, nn::ShardRule> rules = nn::shard_rules(module);
  for (const auto& [name, parameter] : nn::parameters(module)) {
    const nn::ShardRule& rule = rules.at(name);
    if (rule.axis < 0 || (rule.if_divisible && rule.units % ranks != 0)) continue;
    const std::string unit = rule.unit, setting = str("parallel.tensor = ", ranks);
    check(rule.units > 0, ErrorKind::setting, [&, &name = name] {
      return setting + ": " + unit + "s (" + name +
             ") cannot be split over processes; set parallel.tensor and parallel.context to 1";
    });
    check(rule.units >= ranks, ErrorKind::setting, [&] {
      return str(setting, " is more than the model's ", rule.units, " ", unit, "s: expected at most one process per ",
                 unit);
    });
    const int64_t others = rule.grouped_units > 0 ? rule.grouped_units : rule.units;  // of blocks after the first
    const int64_t size = parameter.dim(rule.axis) / (rule.joined * rule.units + (rule.repeats - 1) * others);
    Partition all = scale_partition(even_partition(rule.units, ranks), rule.joined * size);
    for (int i = 1; i < rule.repeats; ++i)
      all = append_partition(all, scale_partition(even_partition(others, ranks), size));
    shards[name] = {rule.axis, all};
  }
  return shards;
}

ShardMap shard_parameters(nn::Module& module, int ranks, int rank) {
  ShardMap shards = tensor_shards(module, ranks);
  nn::replace_parameters(module, [&](const std::string& name, const Tensor& p) {
    const auto at = shards.find(name);
    if (at == shards.end()) return p;
    return nn::parameter(gather_ranges(p.detach(), at->second.axis, at->second.partition.of(rank)));
  });
  return shards;
}

}  // namespace braid::dist
