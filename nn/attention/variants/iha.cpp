// Interleaved head attention (Duvvuri et al. 2026, arXiv 2602.21371): each head has P = 2 pseudo queries, keys and
// values, each a learned sum of those of all heads. A token becomes P tokens, and each head attends among these.
//
//   q~[p][n] = sum_m Aq[p, n, m] q[m],  k~ and v~ alike with Ak and Av      A (P, N, N) or (P, Nkv, Nkv)
//   y~[n]    = attention of the rows t P + p among the keys s P + p', causal by that order
//   y[n]     = sum_p R[p, n] y~[p][n]                                       R (P, N, 1)
//
// At first R = 1/P and A is near the identity, so that a layer starts near plain attention. In the paper P is up to N
// and each pseudo token has a rotary position of its own; here P is 2, since attention costs P^2 times as much, and
// they share that of the token. A cache holds k and v of the heads: the sums are made again where they are read.
#include "braid/autograd/contract.h"
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

constexpr int64_t kPseudo = 2;  // P

class Iha final : public AttentionVariant {
 public:
  Iha(const VariantSizes& s, RandomKey key) {
    for (const auto& [matrices, heads, name] :
         {std::tuple{&q_, s.queries, "q"}, {&k_, s.kv_heads, "k"}, {&v_, s.kv_heads, "v"}}) {
      const Tensor noise = Init::normal(0.02).make({kPseudo, heads, heads}, child(key, name));
      *matrices = parameter(noise.device() == kMeta ? noise : add(noise, eye(heads)));
    }
    collapse_ = parameter(Init::constant(1.0 / kPseudo).make({kPseudo, s.queries, 1}, child(key, "collapse")));
  }
  int64_t pseudo_tokens() const override { return kPseudo; }
  void expand(AttentionOperands& x) const override {
    for (const auto& [of_heads, matrices] : {std::pair{&x.q, &q_}, {&x.k, &k_}, {&x.v, &v_}}) {
      const int64_t B = of_heads->dim(0), T = of_heads->dim(1), N = of_heads->dim(2), d = of_heads->dim(3);
      *of_heads = reshape(einsum("pnm,btmd->btpnd", *matrices, *of_heads), {B, T * kPseudo, N, d});
    }
  }
  Tensor collapse(const Tensor& y) const override {
    const Tensor pseudo = reshape(y, {y.dim(0), y.dim(1) / kPseudo, kPseudo, y.dim(2), y.dim(3)});
    return sum(mul(pseudo, cast(collapse_, y.dtype())), {2});
  }
  void visit(Visitor& v) const override {
    v("q", q_);
    v("k", k_);
    v("v", v_);
    v("collapse", collapse_);
  }

 private:
  Tensor q_, k_, v_, collapse_;
};

}  // namespace

AttentionVariantRule iha_variant() {
  return attention_variant<Iha>(
      {.name = "iha",
       .help = "two pseudo tokens of each token, learned sums of all heads (interleaved heads)",
       .composed = true,
       .pseudo = true});
}

}  // namespace braid::nn
