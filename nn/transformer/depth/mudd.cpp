// Multiway dynamic dense connections (Xiao et al. 2025, MUDDFormer, arXiv 2502.12170): four streams behind each block,
// the inputs of queries, keys, values and of the residual, each a sum of all blocks so far with weights of the token.
//
//   X_0: the embedding, X_{i+1}: the output of block i       J = i + 2 tensors behind block i, C = 4 streams, 1 at the
//   end w = reshape(W2 gelu(W1 rmsnorm(X_{i+1})), (C, J)) + b    rmsnorm without weight; W1 (H, D), W2 (C J, H), b (C,
//   J) s_c = sum_j w[c, j] X_j X_{i+1} = h + ffn(norm(h)),  h = s_r + attention(norm_q(s_q), norm_k(s_k), norm_v(s_v))
//
// H = C J, four times as much behind the last block with expand_last, and with round64 the next larger multiple of 64.
// At first W2 = 0 and b selects X_{i+1}: the stack is the one with plain residual connections. Names of parameters are
// those of the published folders: dynamic_dense.<i>.w1 and w2, dense_bs.<i>.
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/nn/transformer/depth.h"

namespace braid::nn {

namespace {

constexpr int64_t kStreams = 4;  // q, k, v, r

class Mudd final : public DepthConnections {
 public:
  struct Generator {
    int64_t streams, tensors;  // C, J
    Linear w1, w2;
    Tensor bias;  // (C, J)
  };

  Mudd(const DepthSizes& s, RandomKey key) : parallel_(s.parallel_residual), norm_eps_(s.norm_eps) {
    const Init in = s.initialise ? Init::normal(1 / std::sqrt(static_cast<double>(s.width))) : Init::none();
    for (int64_t i = 0; i < s.layers; ++i) {
      const bool last = i + 1 == s.layers;
      const int64_t C = last ? 1 : kStreams, J = i + 2;
      int64_t hidden = C * J * (last && s.expand_last ? 4 : 1);
      if (s.round64) hidden = (hidden / 64 + 1) * 64;
      const RandomKey own = child(key, i);
      Tensor bias = Init::constant(0).make({C, J}, own);
      if (bias.device() != kMeta) bias.sliced(1, J - 1, J).fill(1);
      generators_.push_back({C, J, Linear(s.width, hidden, {.init = in}, child(own, "w1")),
                             Linear(hidden, C * J, {.init = Init::constant(0)}, child(own, "w2")), parameter(bias)});
    }
  }
  std::unique_ptr<DepthPass> begin(const Tensor& x, const Pass& pass) const override;
  std::unique_ptr<DepthConnections> clone() const override { return std::make_unique<Mudd>(*this); }
  void visit(Visitor& v) const override {
    for (size_t i = 0; i < generators_.size(); ++i) {
      v(str("dynamic_dense.", i, ".w1"), generators_[i].w1);
      v(str("dynamic_dense.", i, ".w2"), generators_[i].w2);
      v(str("dense_bs.", i), generators_[i].bias);
    }
  }

  // x = X_{i+1} (B, t, D) -> w (B, t, C, J)
  Tensor weights(size_t i, const Tensor& x) const {
    const Generator& g = generators_[i];
    const Tensor dynamic = g.w2(gelu(g.w1(unweighted_rms_norm(x, norm_eps_))));
    return add(reshape(dynamic, {x.dim(0), x.dim(1), g.streams, g.tensors}), g.bias);
  }
  bool parallel() const { return parallel_; }

 private:
  bool parallel_;
  double norm_eps_;
  std::vector<Generator> generators_;
};

class MuddPass final : public DepthPass {
 public:
  MuddPass(const Mudd& mudd, const Tensor& x, const Pass& pass) : mudd_(mudd), pass_(pass), outputs_{x}, streams_{x} {}
  AttentionInputs attention(size_t) override {
    if (streams_.size() == 1) return {streams_[0]};
    return {streams_[0], streams_[1], streams_[2]};
  }
  Tensor feed_forward(size_t, const Tensor& y) override {
    sum_ = add(streams_.back(), y);
    return mudd_.parallel() ? streams_.back() : sum_;
  }
  void end(size_t i, const Tensor& y) override {
    outputs_.push_back(add(sum_, y));
    const Tensor w = pass_.observe(mudd_.weights(i, outputs_.back()), "layers.", i, ".depth_weights");
    streams_ = weighted_sums(w, outputs_);
  }
  Tensor hidden() const override { return streams_.size() == 1 ? streams_[0] : outputs_.back(); }

 private:
  const Mudd& mudd_;
  const Pass& pass_;
  std::vector<Tensor> outputs_, streams_;  // X_0, X_1, ...; q, k, v, r, or the embedding, or the last sum
  Tensor sum_;
};

std::unique_ptr<DepthPass> Mudd::begin(const Tensor& x, const Pass& pass) const {
  return std::make_unique<MuddPass>(*this, x, pass);
}

}  // namespace

DepthRule mudd_depth() {
  return depth_rule<Mudd>(
      {.name = "mudd",
       .help = "dynamic dense connections: q, k, v and residual each read a sum of all blocks (MUDDFormer)",
       .parallel = true,
       .separate_inputs = true,
       .identity_start = true});
}

}  // namespace braid::nn
