// Multi-token attention (Golovneva et al. 2025, arXiv 2504.00927): a head's scores become sums of those of neighbouring
// queries and keys, pairs of heads mix their probabilities, and each head's output is normalised and gated.
//
//   s'[n](t, j) = sum_{i < cq} sum_{|l| <= ck / 2} K[n, i, l] s[n](t - i, j + l)      cq = 6, ck = 11, at first s' = s
//   p'[g][a]    = sum_b H[g, a, b] softmax(s')[g][b]      heads a, b of the pair g, H (N / 2, 2, 2), at first I
//   z = rmsnorm(y[n]) w,   y'[n] = z sigmoid(z . u + c)   w, u (d), c at first 0
//
// A pair (t - i, j + l) counts as 0 where its key is behind its query, or where t does not attend to the position of
// either: so it needs nothing but what t attends to, and a cache, which holds the queries beside the keys, gives the
// scores of the full pass. Without windows and documents this is the paper's masking. The published code mixes more
// heads at a time, and convolves the probabilities too; here it is the paper's first form, in all layers that have it.
#include "braid/autograd/contract.h"
#include "braid/autograd/convolution.h"
#include "braid/autograd/manipulate.h"
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

constexpr int64_t kQueries = 6, kKeys = 11, kHeads = 2;  // cq, ck, heads that mix

class Mta final : public AttentionVariant {
 public:
  Mta(const VariantSizes& s, RandomKey key)
      : kernel_(Init::constant(0).make({s.queries, kQueries, kKeys}, child(key, "key_query"))),
        mix_(Init::constant(0).make({s.queries / kHeads, kHeads, kHeads}, child(key, "heads"))),
        norm_(parameter(Init::constant(1).make({s.head_dim}, child(key, "norm")))),
        gate_(s.head_dim, 1, {.bias = true, .init = s.init}, child(key, "gate")) {
    check(s.queries % kHeads == 0, ErrorKind::setting, [&] {
      return str("attention mta mixes pairs of heads: expected an even number of them, found ", s.queries);
    });
    if (kernel_.device() != kMeta) {
      kernel_.sliced(1, 0, 1).sliced(2, kKeys / 2, kKeys / 2 + 1).fill(1);
      for (int64_t n = 0; n < kHeads; ++n) mix_.sliced(1, n, n + 1).sliced(2, n, n + 1).fill(1);
    }
    kernel_ = parameter(kernel_), mix_ = parameter(mix_);
  }
  // Rows (t - i, .) are those of an image of scores, convolved. A window limits the pairs of t whatever i: where it
  // hides keys, there is an image for each i.
  Tensor scores(const Tensor& s, const AttentionMask& rows) const override {
    const int64_t N = s.dim(1), all = s.dim(2), T = all - (kQueries - 1);
    const int64_t c = rows.window == 0 ? kQueries : std::min(kQueries, rows.window);
    const int64_t at_once = rows.first(all - 1) > 0 ? 1 : c;
    const Tensor kernel = reshape(flip(cast(kernel_, s.dtype()), 1), {N, 1, kQueries, kKeys});
    Tensor sum;
    for (int64_t row = kQueries - c; row < kQueries; row += at_once) {  // of s and of the kernel, that of i
      const int64_t i = kQueries - 1 - row;
      const AttentionMask mask{rows.causal, at_once > 1 ? 0 : rows.window - i, rows.offset + row};
      const Tensor image = mask_scores(slice(s, 2, row, row + T + at_once - 1), mask, 0);
      const Tensor part =
          conv2d(image, slice(kernel, 2, row, row + at_once), {}, {.padding = {0, kKeys / 2}, .groups = N});
      sum = sum ? add(sum, part) : part;
    }
    return sum;
  }
  Tensor probabilities(const Tensor& p) const override {
    const Tensor pairs = reshape(p, {p.dim(0), p.dim(1) / kHeads, kHeads, p.dim(2), p.dim(3)});
    return reshape(einsum("gab,zgbts->zgats", cast(mix_, p.dtype()), pairs), p.shape());
  }
  Tensor output(const Tensor& y, const Tensor&, const Tensor&, const Pass& pass) const override {
    const Tensor z = rms_norm(y, norm_, 1e-5);
    const Tensor gate = pass.observe(sigmoid(reshape(gate_(z), {z.dim(0), z.dim(1), z.dim(2)})), "mta_gate");
    return mul(z, unsqueeze(gate, -1));
  }
  void visit(Visitor& v) const override {
    v("key_query", kernel_);
    v("heads", mix_);
    v("norm", norm_);
    v("gate", gate_);
  }

 private:
  Tensor kernel_, mix_, norm_;
  Linear gate_;
};

}  // namespace

AttentionVariantRule mta_variant() {
  return attention_variant<Mta>({.name = "mta",
                                 .help = "scores of neighbouring queries and keys, probabilities of pairs of heads "
                                         "(multi-token attention)",
                                 .composed = true,
                                 .earlier_queries = kQueries - 1});
}

}  // namespace braid::nn
