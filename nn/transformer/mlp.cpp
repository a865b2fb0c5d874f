#include "braid/nn/transformer/mlp.h"

#include "braid/autograd/ops.h"
#include "braid/nn/outputs.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

namespace {
Tensor activate(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::silu:
      return silu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::quick_gelu:
      return silu(x * 1.702) / 1.702;  // x sigmoid(1.702 x)
    case Activation::relu:
      return relu(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::relu2:
      return square(relu(x));
    case Activation::automatic:
    case Activation::gelu:
      break;
  }
  return gelu(x);
}
}  // namespace

Mlp::Mlp(const MlpOptions& options, RandomKey key) : options_(options) {
  if (options.kind != FfnKind::swiglu) options_.gates = 0;
  options_.activation = activation_of(options.kind, options.activation);
  const MlpOptions& o = options_;
  check(o.gates >= 0 && (o.gates == 0 || o.hidden % o.gates == 0), "swiglu",
        [&] { return str("the hidden width ", o.hidden, " does not divide into ", o.gates, " gated blocks"); });
  Linear::Options columns = o.projection, rows = o.projection;  // gated blocks stay in one piece
  columns.shard = o.gates > 0 ? ShardRule{.axis = 0, .unit = "gated block", .units = o.gates}
                              : ShardRule{.axis = 0, .unit = "hidden unit", .units = o.hidden};
  rows.shard = columns.shard;
  rows.shard.axis = 1;
  up_ = Linear(o.width, o.hidden, columns, child(key, "w1"));
  if (ffn_inputs(o.kind) == 2) linear_ = Linear(o.width, o.hidden, columns, child(key, "w3"));
  down_ = Linear(o.hidden, o.width, rows, child(key, "w2"));
  if (o.gates > 0) block_gate_ = Linear(o.width, o.gates, {.init = o.projection.init}, child(key, "mg"));
}

Tensor Mlp::operator()(const Tensor& x, const Pass& pass) const {
  const LayerScope layer("feed-forward");
  const Tensor all = pass.gather_rows(x);  // (..., D)
  Tensor hidden;                           // (..., F of this rank)
  switch (options_.kind) {
    case FfnKind::swiglu: {
      const auto [gate, factor] = Linear::both(up_, linear_, all);
      hidden = options_.activation == Activation::silu ? swiglu(gate, factor)
                                                       : mul(activate(options_.activation, gate), factor);
      break;
    }
    case FfnKind::gelu:
      hidden = activate(options_.activation, up_(all));
      break;
  }
  if (options_.gates > 0) hidden = gated(hidden, all, pass.shards.get());
  return output(*this, down_.row_parallel(hidden, pass.shards.get()));
}

// Block e of the hidden vector times softmax(mg x)_e.
Tensor Mlp::gated(const Tensor& hidden, const Tensor& x, const ShardContext* shards) const {
  Tensor s = softmax(block_gate_(x));  // (..., E)
  if (shards) {
    ShardContext::Units units = shards->local_units(options_.gates);
    s = contiguous(slice(s, s.rank() - 1, units.begin, units.end));
  }
  int64_t gates = s.dim(-1);
  Tensor y = mul(reshape(hidden, {-1, gates, hidden.dim(-1) / gates}), reshape(s, {-1, gates, 1}));
  return reshape(y, hidden.shape());
}

void Mlp::visit(Visitor& v) const {
  v("w1", up_);
  if (ffn_inputs(options_.kind) == 2) v("w3", linear_);
  v("w2", down_);
  if (options_.gates > 0) v("mg", block_gate_);
}

}  // namespace braid::nn
