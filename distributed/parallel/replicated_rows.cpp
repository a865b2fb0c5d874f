#include "braid/distributed/parallel/replicated_rows.h"

#include "braid/distributed/parallel/head_shards.h"
#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

Tensor ReplicatedRows::reduce_rows(const Tensor& partial) const { return all_reduce(partial, tensor_); }

nn::ShardContext::Units ReplicatedRows::local_units(int64_t units) const {
  Range local = even_partition(units, tensor_.size()).single(tensor_.rank());
  return {local.begin, local.end};
}

// Route (b): q, k, v of own heads -> of all heads. The compose weights are those of all heads and rows already.
nn::AttentionOperands ReplicatedRows::exchange(const nn::AttentionOperands& local, const AttentionMask&,
                                               const Heads& heads) const {
  const HeadShards by_head = shard_heads(heads.queries, heads.keys, tensor_.size(), heads.joined);
  nn::AttentionOperands x = local;
  if (heads.mixed) {
    x.q = all_gather_replicated(x.q, 2, by_head.queries, tensor_);
    for (Tensor* t : {&x.k, &x.v}) *t = all_gather_replicated(*t, 2, by_head.keys, tensor_);
  } else {
    gather_required_heads(x, by_head, tensor_);
  }
  return x;
}

Tensor ReplicatedRows::attend(const nn::AttentionOperands& x, const DcmhaOptions& options, const Heads& heads) const {
  const HeadShards by_head = shard_heads(heads.queries, heads.keys, tensor_.size(), heads.joined);
  if (!heads.mixed) return nn::attend(evenly_shared(x, by_head, tensor_.rank()), options);
  return local_shard(nn::attend(x, options), 2, by_head.queries, tensor_);  // (B, T, N, d) -> (B, T, n, d)
}

}  // namespace braid::dist
