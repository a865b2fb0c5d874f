// Training over tensor and context ranks: each rank keeps its own rows of every activation between layers (sequence
// parallelism, Korthikanti et al. 2022) and receives the keys of other context ranks that its queries attend to.
#pragma once
#include "braid/distributed/parallel/sequence_shard.h"
#include "braid/nn/shard_context.h"

namespace braid::dist {

class SequenceParallel final : public nn::ShardContext {
 public:
  SequenceParallel(const ProcessMesh& mesh, int64_t T) : mesh_(mesh), rows_(shard_sequence(T, mesh)) {}
  const SequenceShard& rows() const { return rows_; }

  Tensor gather_rows(const Tensor& x) const override;
  Tensor reduce_rows(const Tensor& partial) const override;
  Units local_units(int64_t units) const override;
  Tensor positions() const override { return rows_.positions; }
  nn::AttentionOperands exchange(const nn::AttentionOperands& local, const AttentionMask& mask,
                                 const Heads& heads) const override;
  Tensor attend(const nn::AttentionOperands& operands, const DcmhaOptions& options, const Heads& heads) const override;

  // The entries of (B, T) that belong to this rank's context rank: (B, Tc).
  Tensor local_tokens(const Tensor& ids) const;
  // Own rows (B, t, D) -> all rows in order (B, T, D), the same on every rank. Without gradients.
  Tensor gather_sequence(const Tensor& x) const;

 private:
  KeyExchangePlan plan(const AttentionMask& mask, bool own_rows) const;

  ProcessMesh mesh_;
  SequenceShard rows_;
};

}  // namespace braid::dist
