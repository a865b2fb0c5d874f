// Manifold-constrained hyper-connections (Xie et al. 2025, arXiv 2512.24880): the residual stream is n = 4 streams X,
// which each layer F reads, mixes and writes with weights of the token.
//
//   X (n, D): at first the embedding n times, at the end its mean over streams      (positions left out)
//   [p | o | r] = [a_p | a_o | a_r] (rmsnorm(X) P) + b      rmsnorm over n D, P (n D, 2 n + n n), b (2 n + n n)
//   X <- S X + 2 sigmoid(o)^T F(sigmoid(p) X),  S = Sinkhorn(exp(r)): 20 times rows, then columns, divided by their
//   sums
//
// Rows and columns of S sum to 1, so that mixing neither amplifies nor forgets. At first a = 0.01 as in the paper; b is
// chosen here so that a new stack is close to plain residual connections: reads are means, writes the layer's output, S
// nearly the identity.
#include <cmath>

#include "braid/autograd/composed.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/recompute.h"
#include "braid/autograd/reductions.h"
#include "braid/nn/transformer/depth.h"

namespace braid::nn {

namespace {

constexpr int64_t n = 4;
constexpr int kSinkhorn = 20;
constexpr double kOffDiagonal = -8;  // of b where r is not on the diagonal

// r (B, t, n, n) -> doubly stochastic matrices
Tensor sinkhorn(const Tensor& r) {
  return recompute(
      [](const std::vector<Tensor>& in) {
        Tensor m = exp(in[0]);
        for (int i = 0; i < kSinkhorn; ++i) {
          m = div(m, sum(m, {3}, true));
          m = div(m, sum(m, {2}, true));
        }
        return m;
      },
      {r});
}

class Mhc final : public DepthConnections {
 public:
  struct Layer {
    Linear products;       // P
    Tensor factors, bias;  // a (3), b
  };
  // All of one layer, for each position: p (1, n), o (n, 1), S (n, n).
  struct Weights {
    Tensor read, write, mix;
  };

  Mhc(const DepthSizes& s, RandomKey key) : norm_eps_(s.norm_eps) {
    const Init in = s.initialise ? Init::normal(1 / std::sqrt(static_cast<double>(n * s.width))) : Init::none();
    for (int64_t l = 0; l < 2 * s.layers; ++l) {
      Tensor bias = Init::constant(0).make({2 * n + n * n}, key);
      if (bias.device() != kMeta) {
        bias.sliced(0, 0, n).fill(-std::log(n - 1.0));  // sigmoid: 1 / n
        Tensor mix = bias.sliced(0, 2 * n, 2 * n + n * n);
        mix.fill(kOffDiagonal);
        for (int64_t k = 0; k < n; ++k) mix.sliced(0, k * (n + 1), k * (n + 1) + 1).fill(0);
      }
      layers_.push_back({Linear(n * s.width, 2 * n + n * n, {.init = in}, child(key, l)),
                         parameter(Init::constant(0.01).make({3}, key)), parameter(bias)});
    }
  }
  std::unique_ptr<DepthPass> begin(const Tensor& x, const Pass& pass) const override;
  std::unique_ptr<DepthConnections> clone() const override { return std::make_unique<Mhc>(*this); }
  void visit(Visitor& v) const override {
    for (size_t l = 0; l < layers_.size(); ++l) {
      v(str("depth.", l, ".products"), layers_[l].products);
      v(str("depth.", l, ".factors"), layers_[l].factors);
      v(str("depth.", l, ".bias"), layers_[l].bias);
    }
  }

  // x (B, t, n, D)
  Weights weights(size_t l, const Tensor& x) const {
    const Layer& layer = layers_[l];
    const int64_t B = x.dim(0), t = x.dim(1);
    const Tensor normed = unweighted_rms_norm(reshape(x, {B, t, n * x.dim(3)}), norm_eps_);
    const DType wide = accumulate_type(x.dtype());
    const Tensor z = cast(layer.products(normed), wide), bias = cast(layer.bias, wide), a = cast(layer.factors, wide);
    const auto part = [&](int64_t of, int64_t first, int64_t size, const Shape& shape) {
      const Tensor y =
          add(mul(slice(z, 2, first, first + size), slice(a, 0, of, of + 1)), slice(bias, 0, first, first + size));
      return reshape(y, shape);
    };
    return {cast(sigmoid(part(0, 0, n, {B, t, 1, n})), x.dtype()),
            cast(scale(sigmoid(part(1, n, n, {B, t, n, 1})), 2), x.dtype()),
            cast(sinkhorn(part(2, 2 * n, n * n, {B, t, n, n})), x.dtype())};
  }

 private:
  double norm_eps_;
  std::vector<Layer> layers_;
};

class MhcPass final : public DepthPass {
 public:
  MhcPass(const Mhc& mhc, const Tensor& x, const Pass& pass) : mhc_(mhc), pass_(pass) {
    streams_ = contiguous(expand(unsqueeze(x, 2), {x.dim(0), x.dim(1), n, x.dim(2)}));
  }
  AttentionInputs attention(size_t i) override { return read(2 * i, str("layers.", i, ".depth_mix")); }
  Tensor feed_forward(size_t i, const Tensor& y) override {
    write(y);
    return read(2 * i + 1, str("layers.", i, ".depth_mix_ffn"));
  }
  void end(size_t, const Tensor& y) override { write(y); }
  Tensor hidden() const override { return mean(streams_, {2}); }

 private:
  Tensor read(size_t l, const std::string& name) {
    weights_ = mhc_.weights(l, streams_);
    pass_.observe(weights_.mix, name);
    return reshape(matmul(weights_.read, streams_), {streams_.dim(0), streams_.dim(1), streams_.dim(3)});
  }
  void write(const Tensor& y) { streams_ = add(matmul(weights_.mix, streams_), mul(weights_.write, unsqueeze(y, 2))); }

  const Mhc& mhc_;
  const Pass& pass_;
  Tensor streams_;  // (B, t, n, D)
  Mhc::Weights weights_;
};

std::unique_ptr<DepthPass> Mhc::begin(const Tensor& x, const Pass& pass) const {
  return std::make_unique<MhcPass>(*this, x, pass);
}

}  // namespace

DepthRule mhc_depth() {
  return depth_rule<Mhc>(
      {.name = "mhc",
       .help = "four residual streams, mixed by doubly stochastic matrices of the token (hyper-connections)"});
}

}  // namespace braid::nn
