#include "braid/nn/attention/qk_norm.h"

namespace braid::nn {

QkNorm::QkNorm(const QkNormOptions& o)
    : options_(o),
      q_(o.all_heads ? o.heads * o.queries_per_head * o.head_dim : o.head_dim, o.eps, "scale", o.offset),
      k_(o.all_heads ? o.kv_heads * o.head_dim : o.head_dim, o.eps, "scale", o.offset) {}

Qkv QkNorm::split(const Tensor& product, QkvSplit how, const Pass& pass) const {
  if (!q_.weight()) return split_qkv(product, how);
  const DType type = product.dtype();
  if (!options_.all_heads) {  // the gains are wider than the product where 16 bits would round 1 + weight
    how.q_norm = q_.gain(), how.k_norm = k_.gain(), how.norm_eps = options_.eps;
    const Qkv r = split_qkv(cast(product, how.q_norm.dtype()), how);
    return {cast(r.q, type), cast(r.k, type), cast(r.v, type)};
  }
  const int64_t B = product.dim(0), T = product.dim(1), d = how.head_dim;
  const std::vector<Tensor> parts = braid::split(product, {how.heads * d, how.kv_heads * d, how.kv_heads * d}, 2);
  const std::vector<Tensor> normed = over_all_heads({parts[0], parts[1]}, pass);
  const auto rotated = [&](const Tensor& x, int64_t heads) {
    const Tensor y = reshape(x, {B, T, heads, d});
    return how.cosine ? rope(y, how.cosine, how.sine) : y;
  };
  return {rotated(normed[0], how.heads), rotated(normed[1], how.kv_heads), reshape(parts[2], {B, T, how.kv_heads, d})};
}

// The sums of squares are those of all ranks: their rows are shared out, added, and gathered again.
std::vector<Tensor> QkNorm::over_all_heads(const std::vector<Tensor>& x, const Pass& pass) const {
  if (!pass.shards) return {q_(x[0]), k_(x[1])};
  const DType type = x[0].dtype(), wide = accumulate_type(type);
  std::vector<Tensor> squares;
  for (const Tensor& part : x) squares.push_back(sum(square(cast(part, wide)), {2}, true));
  const Tensor sums = pass.gather_rows(pass.shards->reduce_rows(concat(squares, 2)));  // (B, T, 2)
  std::vector<Tensor> y;
  for (const RmsNorm* norm : {&q_, &k_}) {
    const auto i = static_cast<int64_t>(y.size());
    const int64_t heads = i == 0 ? options_.heads : options_.kv_heads;
    const int64_t d = options_.head_dim * (i == 0 ? options_.queries_per_head : 1);
    const Tensor rstd = rsqrt(slice(sums, 2, i, i + 1) / static_cast<double>(heads * d) + options_.eps);
    const ShardContext::Units own = pass.shards->local_units(heads);
    const Tensor gain = slice(cast(norm->gain(), wide), 0, own.begin * d, own.end * d);
    y.push_back(cast(mul(mul(cast(x[y.size()], wide), rstd), gain), type));
  }
  return y;
}

void QkNorm::visit(Visitor& v) const {
  if (!q_.weight()) return;
  v("q_norm", q_);
  v("k_norm", k_);
}

}  // namespace braid::nn
