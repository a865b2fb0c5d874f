// Multi-head attention and DCMHA over the tensor and context ranks.
//
// The projections are split by heads. DCMHA mixes heads, so what happens between them depends on the head groups:
//
//   (a) whole groups per rank      u rows --gather--> all rows --> q, k, v, weights of our groups --> attend -->
//                                  y of our heads
//   (b) groups across ranks (G=1)  the same q, k, v, then: q of our heads, all rows --exchange--> q of all heads, our
//                                  rows; k and v of our heads --exchange--> all heads of the rows that our queries see;
//                                  compose weights from our rows u, of the key side those that our queries see are
//                                  fetched --> attend --> y of all heads, our rows --exchange--> y of our heads, all
//                                  rows
//
// Keys, values and key-side weights of other context ranks' positions are fetched before `attend`, those only that our
// queries see: in a layer with a window the stretch before each run of queries.
#pragma once
#include "braid/distributed/parallel/row_parallel_linear.h"
#include "braid/distributed/sharding/sequence_shard.h"
#include "braid/distributed/sharding/shard_spec.h"
#include "braid/nn/attention/attention.h"

namespace braid::dist {

// How heads go to tensor ranks.
struct HeadSplit {
  bool whole_groups = true;  // route (a)
  Partition heads;           // of N
  Partition groups;          // of G; route (a) with composition only
};
// Error(setting) when there are fewer heads than ranks.
HeadSplit split_heads(const nn::AttentionOptions& options, int ranks);

// How the parameters of the layer are dealt out, by name; all others are whole on every rank.
std::vector<std::pair<std::string, Shard>> attention_shards(const nn::AttentionOptions& options, int ranks);

class ParallelAttention final : public nn::Module {
 public:
  ParallelAttention() = default;
  // options of the whole layer. Parameters are this rank's parts, with undefined contents: fill them from the whole.
  ParallelAttention(const nn::AttentionOptions& options, const ProcessMesh& mesh);
  // u (B, t, D): our rows, normalised -> (B, t, D)
  Tensor operator()(const Tensor& u, const SequenceShard& rows, const nn::Rope& rope) const;
  void visit(nn::Visitor& v) override;
  void workspace(int64_t bytes) { options_.workspace = bytes; }

 private:
  nn::AttentionOptions options_;
  ProcessMesh mesh_;
  HeadSplit split_;
  nn::Linear qkv_;  // rows: queries, keys, values of our heads
  RowParallelLinear out_;
  nn::RmsNorm q_norm_, k_norm_;
  nn::CompositionWeights compose_;  // (a) of our groups, (b) whole
};

}  // namespace braid::dist
