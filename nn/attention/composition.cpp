#include "braid/nn/attention/composition.h"

#include <algorithm>
#include <iterator>

#include "braid/autograd/ops.h"
#include "braid/nn/attention/composition_scale.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

namespace {

thread_local CompositionScaleScope* scale_scope = nullptr;  // the innermost one of this thread

Tensor scaled(const Tensor& x, double factor) {
  if (!x || factor == 1) return x;
  return factor == 0 ? Tensor() : scale(x, factor);
}

// A low-rank term is linear in the factors that write heads.
HeadMixing scaled(HeadMixing c, const CompositionScale::Stage& by) {
  c.base = scaled(c.base, by.base);
  c.q_up = scaled(c.q_up, by.query);
  c.k_up = scaled(c.k_up, by.key);
  if (!c.q_up) c.q_down = {};
  if (!c.k_up) c.k_down = {};
  c.q_gate = scaled(c.q_gate, by.query_gate);
  c.k_gate = scaled(c.k_gate, by.key_gate);
  return c;
}

}  // namespace

CompositionScaleScope::CompositionScaleScope() : outer_(std::exchange(scale_scope, this)) {}
CompositionScaleScope::~CompositionScaleScope() { scale_scope = outer_; }

Tensor without_head(const Tensor& y) {
  const int64_t head = scale_scope ? scale_scope->factors().without_head : -1;
  if (head < 0) return y;
  Tensor kept = ones({y.dim(2), 1}, y.dtype(), y.device());
  kept.sliced(0, head, head + 1).fill(0);
  return mul(y, kept);
}

std::vector<std::string> CompositionOptions::active_branches() const {
  std::vector<std::string> active;
  if (rank == 0 && !gates) return active;
  std::ranges::copy_if(branches, std::back_inserter(active), [&](const std::string& branch) {
    return (branch.starts_with("pre") ? pre : post) && (branch.ends_with("q") ? query_side : key_side);
  });
  return active;
}

CompositionWeights::CompositionWeights(int64_t width, int64_t heads, const CompositionOptions& options, RandomKey key)
    : options_(options), branches_(options.active_branches()) {
  int64_t G = options.groups, R = options.rank;
  check(G >= 1 && heads % G == 0, "compose_weights",
        [&] { return str(heads, " heads do not divide into ", G, " groups"); });
  check(R >= 0, "compose_weights", [&] { return str("the rank must not be negative, got ", R); });
  check(options.mixes_heads(), "compose_weights",
        "all branches and static matrices are switched off; use plain attention");
  const int sides = options.rank > 0 || options.gates ? options.query_side + options.key_side : 0;
  const int switched_on = (options.pre + options.post) * sides;
  check(std::ssize(branches_) == switched_on, "compose_weights", [&] {
    return str(switched_on, " branches are switched on, but only ", branches_.size(), " of them are listed");
  });
  heads_per_group_ = heads / G;
  int64_t M = heads_per_group_, C = static_cast<int64_t>(branches_.size()), K = 2 * R * M;
  if (C > 0 && R > 0) {
    dw1_ = parameter(options.dw1.make({width, G, C, K}, child(key, "dw1")));
    Tensor qkw = options.qkw.make({G, C, K, 2 * R, M}, child(key, "qkw"));
    if (options.identity_start && !ShapeOnlyScope::active()) qkw.sliced(3, R, 2 * R).fill(0);
    qkw_ = parameter(qkw);
  }
  const auto added = [&](const Init& init) { return options.identity_start ? Init::constant(0) : init; };
  if (C > 0 && options.gates) dd_ = parameter(added(options.dd).make({width, G, C * M}, child(key, "dd")));
  if (!options.static_term) return;
  if (options.pre) pre_base_ = parameter(added(options.base).make({G, M, M}, child(key, "pre_proj")));
  if (options.post) post_base_ = parameter(added(options.base).make({G, M, M}, child(key, "post_proj")));
}

CompositionWeights::Stages CompositionWeights::operator()(const Tensor& x, const SampleRandom& random) const {
  const LayerScope layer("compose");
  int64_t B = x.dim(0), T = x.dim(1), D = x.dim(2), G = groups(), R = options_.rank, M = heads_per_group_;
  int64_t C = static_cast<int64_t>(branches_.size()), K = 2 * R * M;

  std::vector<ComposeFactors> factors;  // of the branches
  if (C > 0) {
    Tensor w, gates = dd_ ? reshape(matmul(x, reshape(dd_, {D, G * C * M})), {B, T, G, C, M})
                          : zeros({B, T, G, C, M}, x.dtype(), x.device());
    if (dw1_) {
      Tensor hidden = reshape(matmul(x, reshape(dw1_, {D, G * C * K})), {B * T, G, C, K});
      hidden = permute(options_.tanh_gelu ? gelu_tanh(hidden) : gelu(hidden), {1, 2, 0, 3});  // (G, C, B T, K)
      w = matmul(hidden, reshape(qkw_, {G, C, K, 2 * R * M}));                                // (G, C, B T, 2R M)
      w = reshape(w, {G, C, B, T, 2 * R, M});
    }
    factors = compose_factors(w, gates, options_.norm_eps);
    for (size_t c = 0; c < factors.size() && !dd_; ++c) factors[c].gate = {};
    for (size_t c = 0; options_.dropout > 0 && c < factors.size(); ++c) {
      const SampleRandom of_branch = random.child(branches_[c].c_str());
      if (factors[c].up) factors[c].up = of_branch.child("up").dropout(factors[c].up, options_.dropout);
      if (factors[c].gate) factors[c].gate = of_branch.child("gate").dropout(factors[c].gate, options_.dropout);
    }
  }

  auto of = [&](const char* branch) {
    auto at = std::ranges::find(branches_, branch);
    return at == branches_.end() ? ComposeFactors() : factors[static_cast<size_t>(at - branches_.begin())];
  };
  auto stage = [&](const char* query, const char* key, const Tensor& base) -> HeadMixing {
    ComposeFactors q = of(query), k = of(key);
    return {base, q.down, q.up, k.down, k.up, q.gate, k.gate};
  };
  Stages stages{stage("pre_q", "pre_k", pre_base_), stage("post_q", "post_k", post_base_)};
  if (!scale_scope) return stages;
  return {scaled(stages.pre, scale_scope->factors().pre), scaled(stages.post, scale_scope->factors().post)};
}

void CompositionWeights::visit(Visitor& v) const {
  const auto by_group = [&](int axis) {
    return ShardRule{.axis = axis, .unit = "head group", .units = options_.groups, .if_divisible = true};
  };
  v("dw1", dw1_, by_group(1));
  v("qkw", qkw_, by_group(0));
  v("dd", dd_, by_group(1));
  v("pre_proj.w", pre_base_, by_group(0));
  v("post_proj.w", post_base_, by_group(0));
}

KeyWiseMixing key_wise(const HeadMixing& c) { return {c.k_down, c.k_up, c.k_gate}; }

HeadMixing with_key_wise(HeadMixing c, const KeyWiseMixing& side) {
  c.k_down = side.down;
  c.k_up = side.up;
  c.k_gate = side.gate;
  return c;
}

}  // namespace braid::nn
