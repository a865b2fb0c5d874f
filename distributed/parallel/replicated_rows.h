// Generation over tensor ranks: the parameters are sharded as in training, while the rows of an activation are
// replicated on every rank (a step has one row, which cannot be sharded). Context ranks all do the same work.
//
// Each rank caches the keys and values that its own heads read, or all of them where head groups span ranks. For use
// under NoGrad: the gradients of replicated rows would be counted once per rank.
#pragma once
#include "braid/distributed/comm/communicator.h"
#include "braid/nn/shard_context.h"

namespace braid::dist {

class ReplicatedRows final : public nn::ShardContext {
 public:
  explicit ReplicatedRows(const Communicator& tensor) : tensor_(tensor) {}
  Tensor gather_rows(const Tensor& x) const override { return x; }
  Tensor reduce_rows(const Tensor& partial) const override;
  Units local_units(int64_t units) const override;
  Tensor positions() const override { return {}; }
  nn::AttentionOperands exchange(const nn::AttentionOperands& local, const AttentionMask& mask,
                                 const Heads& heads) const override;
  Tensor attend(const nn::AttentionOperands& x, const DcmhaOptions& options, const Heads& heads) const override;

 private:
  Communicator tensor_;
};

}  // namespace braid::dist
