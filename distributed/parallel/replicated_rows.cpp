#include "braid/distributed/parallel/replicated_rows.h"

#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

Tensor ReplicatedRows::reduce_rows(const Tensor& partial) const { return all_reduce(partial, tensor_); }

nn::ShardContext::Units ReplicatedRows::local_units(int64_t units) const {
  Range local = even_partition(units, tensor_.size()).single(tensor_.rank());
  return {local.begin, local.end};
}

// Route (b): q, k, v (B, T, n, d) -> (B, T, N, d). The compose weights are those of all heads and rows already.
nn::AttentionOperands ReplicatedRows::exchange(const nn::AttentionOperands& local, const AttentionMask&,
                                               int64_t mixed_heads) const {
  if (mixed_heads == 0) return local;
  Partition heads = even_partition(mixed_heads, tensor_.size());
  nn::AttentionOperands x = local;
  for (Tensor* t : {&x.q, &x.k, &x.v}) *t = all_gather_replicated(*t, 2, heads, tensor_);
  return x;
}

Tensor ReplicatedRows::attend(const nn::AttentionOperands& x, const DcmhaOptions& options, int64_t mixed_heads) const {
  Tensor y = nn::attend(x, options);  // (B, T, heads, d)
  return mixed_heads > 0 ? local_shard(y, 2, even_partition(mixed_heads, tensor_.size()), tensor_) : y;
}

}  // namespace braid::dist
