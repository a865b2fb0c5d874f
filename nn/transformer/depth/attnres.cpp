// Attention residuals (Kimi Team 2026, arXiv 2603.15031), the full form: each layer reads a mean of the embedding and
// of the outputs of all layers before it, with weights of the token.
//
//   v_0: the embedding, v_1 ... v_{2L}: the outputs of attention and feed-forward of each block
//   x_l = sum_{j <= l} a_j v_j,  a = softmax over j of w_l . rmsnorm(v_j)      w_l (D), l = 1 ... 2L, at first 0
//
// Layer l + 1 reads x_l, and the final norm x_{2L}. In the paper each w_l comes with the weight of a norm; their
// product is the vector here. All 2L + 1 tensors are kept; the paper's block form, which adds them up in blocks, is not
// here.
#include "braid/autograd/ops.h"
#include "braid/autograd/reductions.h"
#include "braid/nn/transformer/depth.h"

namespace braid::nn {

namespace {

class Attnres final : public DepthConnections {
 public:
  Attnres(const DepthSizes& s, RandomKey key)
      : norm_eps_(s.norm_eps), queries_(parameter(Init::constant(0).make({2 * s.layers, s.width}, key))) {}
  std::unique_ptr<DepthPass> begin(const Tensor& x, const Pass& pass) const override;
  std::unique_ptr<DepthConnections> clone() const override { return std::make_unique<Attnres>(*this); }
  void visit(Visitor& v) const override { v("depth.queries", queries_); }

  // v (B, t, D) -> w_l . rmsnorm(v) for all l, (B, t, 2L)
  Tensor scores(const Tensor& v) const { return linear(unweighted_rms_norm(v, norm_eps_), queries_); }

 private:
  double norm_eps_;
  Tensor queries_;  // (2L, D)
};

class AttnresPass final : public DepthPass {
 public:
  AttnresPass(const Attnres& attnres, const Tensor& x, const Pass& pass) : attnres_(attnres), pass_(pass), read_(x) {
    keep(x);
  }
  AttentionInputs attention(size_t) override { return read_; }
  Tensor feed_forward(size_t i, const Tensor& y) override {
    keep(y);
    return mean(2 * i, str("layers.", i, ".depth_weights_ffn"));
  }
  void end(size_t i, const Tensor& y) override {
    keep(y);
    read_ = mean(2 * i + 1, str("layers.", i, ".depth_weights"));
  }
  Tensor hidden() const override { return read_; }

 private:
  void keep(const Tensor& v) {
    values_.push_back(v);
    scores_.push_back(attnres_.scores(v));
  }
  Tensor mean(size_t l, const std::string& name) const {
    const auto at = static_cast<int64_t>(l);
    std::vector<Tensor> of_l;  // (B, t, 1) each
    for (const Tensor& s : scores_) of_l.push_back(slice(s, 2, at, at + 1));
    const Tensor a = pass_.observe(softmax(concat(of_l, 2)), name);
    return weighted_sums(unsqueeze(a, 2), values_)[0];
  }

  const Attnres& attnres_;
  const Pass& pass_;
  std::vector<Tensor> values_, scores_;  // (B, t, D), (B, t, 2L)
  Tensor read_;
};

std::unique_ptr<DepthPass> Attnres::begin(const Tensor& x, const Pass& pass) const {
  return std::make_unique<AttnresPass>(*this, x, pass);
}

}  // namespace

DepthRule attnres_depth() {
  return depth_rule<Attnres>(
      {.name = "attnres", .help = "each layer attends to the outputs of all layers before it (attention residuals)"});
}

}  // namespace braid::nn
