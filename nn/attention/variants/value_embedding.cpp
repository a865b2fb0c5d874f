// Value embeddings (Jordan et al. 2024, modded-nanogpt; nanochat's form): each layer has a table of value vectors by
// token, and each value head a gate of the token's input.
//
//   v'[n] = v[n] + 2 sigmoid(x Wg)[n] E[token][n]      x (B, T, D), Wg (D, Nkv), at first 0, E (V, Nkv, d)
//
// The table is that of the layer alone; nanochat gives one to every second layer: attention_layers=odd.
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class ValueEmbedding final : public AttentionVariant {
 public:
  ValueEmbedding(const VariantSizes& s, RandomKey key)
      : table_(parameter(s.init.make({s.vocabulary, s.kv_heads * s.head_dim}, child(key, "table")))),
        gate_(s.width, s.kv_heads, {.init = Init::constant(0), .shard = by_head(0, s)}, child(key, "gate")),
        by_head_(by_head(1, s)) {
    check(s.vocabulary > 0, ErrorKind::setting, "attention value-embedding needs a model that reads tokens");
  }
  Tensor projections(const Tensor& qkv, const QkvSplit& how, const Tensor& x, const Pass& pass) const override {
    check(bool(pass.ids), "value_embedding", "the pass has no tokens");
    const int64_t B = qkv.dim(0), T = qkv.dim(1), d = how.head_dim, N = how.kv_heads, rest = how.heads + N;
    const Tensor added = reshape(cast(embedding(table_, pass.ids), qkv.dtype()), {B, T, N, d});
    const Tensor gate = scale(pass.observe(sigmoid(gate_(x)), "value_gate"), 2);
    const Tensor v = reshape(slice(qkv, 2, rest * d, (rest + N) * d), {B, T, N, d});
    const Tensor changed = add(v, mul(unsqueeze(gate, -1), added));
    return concat({slice(qkv, 2, 0, rest * d), reshape(changed, {B, T, N * d})}, 2);
  }
  void visit(Visitor& v) const override {
    v("table", table_, by_head_);
    v("gate", gate_);
  }

 private:
  static ShardRule by_head(int axis, const VariantSizes& s) {
    return {.axis = axis, .unit = "key/value head", .units = s.kv_heads};
  }
  Tensor table_;
  Linear gate_;
  ShardRule by_head_;
};

}  // namespace

AttentionVariantRule value_embedding_variant() {
  return attention_variant<ValueEmbedding>(
      {.name = "value-embedding", .help = "values get a vector of the token, by a table of each layer"});
}

}  // namespace braid::nn
