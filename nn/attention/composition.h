// Generates the dynamic weights of Compose, DCMHA's mixing of heads, from the layer's input.
//
//   hid[g,c,:] = GELU(x dw1[:,g,c,:])                     c: branch (pre/post stage, query/key side)
//   w[g,c,s,m] = sum_k hid[g,c,k] qkw[g,c,k,s,m]          s in [0, 2R): R factors that read heads, R that write them
//   down = w[:R] / sqrt(mean_m w[:R]^2 + eps),  up = w[R:],  gate = tanh(x dd)
//
// A stage or side that is switched off computes nothing and has no parameter: C counts the branches that are
// on, a stage that is off has no static matrix, gates that are off no dd. K = 2 R M does not change with C, so a model
// without a branch equals the complete one whose part of that branch in qkw and dd is zero.
//
// Identity start: the parts of qkw and dd that make `up` and `gate`, and the static matrices, are zero. Every added
// term is then an exact zero, so the output is bit-identical to that of the layer without Compose. The zeroed
// parameters still have gradients, since `down` is not zero and tanh'(0) = 1: the first step leaves the identity. (With
// both factors zero no gradient of dw1 and qkw would ever differ from zero.)
#pragma once
#include "braid/nn/attention/kv_cache.h"
#include "braid/nn/init.h"
#include "braid/nn/module.h"
#include "braid/nn/sample_random.h"

namespace braid::nn {

struct CompositionOptions {
  int64_t groups = 1;
  int64_t rank = 2;              // of each dynamic term; 0: gates alone
  bool pre = true, post = true;  // compose before / after softmax, else identity there
  bool query_side = true, key_side = true;
  bool gates = true;         // of the branches that are on; false: their low-rank terms alone
  bool static_term = false;  // of the stages that are on
  bool tanh_gelu = true;     // GELU kind of the generator: tanh approximation or exact
  double norm_eps = 1e-6;    // of the norm over heads
  double dropout = 0;        // of the elements of `up` and `gate`, by sample, while a model trains
  // Order of the C axis in the parameters. Branches of a stage or side that is switched off have no index on that axis.
  std::vector<std::string> branches = {"pre_q", "pre_k", "post_q", "post_k"};
  Init dw1 = Init::normal(0.02), qkw = Init::normal(1e-4), dd = Init::normal(1e-4), base = Init::normal(0.02);
  bool identity_start = false;  // after these: the layer starts as the same layer without Compose

  // The C axis: the branches whose stage and side are on; none without rank and gates.
  std::vector<std::string> active_branches() const;
  bool has_static_term() const { return static_term && (pre || post); }
  // Something is mixed: a branch or a static matrix exists. Otherwise the layer is plain attention.
  bool mixes_heads() const { return has_static_term() || !active_branches().empty(); }
};

// The parameters of Compose, for options that mix heads.
class CompositionWeights final : public Module {
 public:
  CompositionWeights() = default;
  CompositionWeights(int64_t width, int64_t heads, const CompositionOptions& options, RandomKey key);

  struct Stages {
    HeadMixing pre, post;
  };
  // The weights of both stages for the positions of x (B, T, D); sides and stages that are switched off are empty.
  Stages operator()(const Tensor& x, const SampleRandom& random = {}) const;
  // Groups and heads of the parameters here: all, or this rank's share.
  int64_t groups() const { return dd_ ? dd_.dim(1) : dw1_ ? dw1_.dim(1) : (pre_base_ ? pre_base_ : post_base_).dim(0); }
  int64_t heads() const { return groups() * heads_per_group_; }
  void visit(Visitor& v) const override;

 private:
  CompositionOptions options_;
  std::vector<std::string> branches_;  // of the C axis
  int64_t heads_per_group_ = 0;        // M
  Tensor dw1_;                         // (D, G, C, K), K = 2 R M; empty without branches or ranks
  Tensor qkw_;                         // (G, C, K, 2R, M); empty without branches or ranks
  Tensor dd_;                          // (D, G, C M): C chunks of M in branch order; empty without branches or gates
  Tensor pre_base_, post_base_;        // (G, M, M) or empty: the static term
};

// The key side of a stage, for the cache, and the other way round.
KeyWiseMixing key_wise(const HeadMixing& c);
HeadMixing with_key_wise(HeadMixing c, const KeyWiseMixing& side);

}  // namespace braid::nn
