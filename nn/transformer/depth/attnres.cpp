// Attention residuals (Kimi Team 2026, arXiv 2603.15031), the full form: each layer reads a mean of the embedding and
// of the outputs of all layers before it, with weights of the token.
//
//   v_0: the embedding, v_1 ... v_{2L}: the outputs of attention and feed-forward of each block
//   x_l = sum_{j <= l} a_j v_j,  a = softmax over j of w_l . rmsnorm(v_j)      w_l (D), l = 1 ... 2L, at first 0
//
// Layers come in groups of G: before the first of a group, which begins with J tensors behind it, the sums over those
// of all its layers are one product, which reads them once; each layer then adds what has come since:
//
//   y_l = sum_{j < J} b_j v_j,  b = softmax over j < J,  z_l = log of the sum of that softmax
//   x_l = c_J y_l + sum_{J <= j <= l} c_j v_j,  c = softmax of (z_l, the scores of v_J ... v_l)
//
// Layer l + 1 reads x_l, and the final norm x_{2L}. In the paper each w_l comes with the weight of a norm; their
// product is the vector here. All 2L + 1 tensors are kept; the paper's block form, which adds them up in blocks, is not
// here.
#include <algorithm>

#include "braid/autograd/composed.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/reductions.h"
#include "braid/nn/transformer/depth.h"

namespace braid::nn {

namespace {

constexpr size_t kGroup = 4;  // G: (2L)^2 / (2G) tensors are read for groups, 2L G / 2 within them

class Attnres final : public DepthConnections {
 public:
  Attnres(const DepthSizes& s, RandomKey key)
      : norm_eps_(s.norm_eps), queries_(parameter(Init::constant(0).make({2 * s.layers, s.width}, key))) {}
  std::unique_ptr<DepthPass> begin(const Tensor& x, const Pass& pass) const override;
  std::unique_ptr<DepthConnections> clone() const override { return std::make_unique<Attnres>(*this); }
  void visit(Visitor& v) const override { v("depth.queries", queries_); }

  // v (B, t, D) -> w_l . rmsnorm(v) for all l, (B, t, 2L), f32 for 16 bits
  Tensor scores(const Tensor& v) const {
    return cast(linear(unweighted_rms_norm(v, norm_eps_), queries_), accumulate_type(v.dtype()));
  }
  size_t layers() const { return static_cast<size_t>(queries_.dim(0)); }  // 2L

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
  void begin_group(size_t l) {
    const auto first = static_cast<int64_t>(l), end = static_cast<int64_t>(std::min(l + kGroup, attnres_.layers()));
    std::vector<Tensor> scores;  // (B, t, G, 1) each
    for (const Tensor& s : scores_) scores.push_back(unsqueeze(slice(s, 2, first, end), 3));
    const Tensor all = concat(scores, 3);
    before_ = values_.size();
    weights_ = softmax(all);
    sums_ = weighted_sums(cast(weights_, read_.dtype()), values_);
    logs_ = split(logsumexp(all, 3), std::vector<int64_t>(sums_.size(), 1), 2);
  }
  Tensor mean(size_t l, const std::string& name) {
    const size_t in_group = l % kGroup;
    if (in_group == 0) begin_group(l);
    const auto at = static_cast<int64_t>(l);
    std::vector<Tensor> scores = {logs_[in_group]}, tensors = {sums_[in_group]};
    for (size_t j = before_; j < values_.size(); ++j) {
      scores.push_back(slice(scores_[j], 2, at, at + 1));
      tensors.push_back(values_[j]);
    }
    const Tensor c = softmax(concat(scores, 2));  // (B, t, 1 + what came since)
    if (pass_.observer) {
      const Tensor b = select(weights_, 2, static_cast<int64_t>(in_group));
      pass_.observe(concat({mul(b, slice(c, 2, 0, 1)), slice(c, 2, 1, c.dim(2))}, 2), name);
    }
    return tensors.size() == 1 ? tensors[0] : weighted_sums(unsqueeze(cast(c, read_.dtype()), 2), tensors)[0];
  }

  const Attnres& attnres_;
  const Pass& pass_;
  std::vector<Tensor> values_, scores_;  // (B, t, D), (B, t, 2L)
  size_t before_ = 0;                    // J of the group
  Tensor weights_;                       // (B, t, G, J), b of its layers
  std::vector<Tensor> sums_, logs_;      // y (B, t, D) and z (B, t, 1) of its layers
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
