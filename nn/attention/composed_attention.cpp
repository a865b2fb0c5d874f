#include "braid/nn/attention/composed_attention.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/math.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/recompute.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/trace_device.h"

namespace braid::nn {

namespace {

constexpr int64_t kBlockBytes = 8 << 20;  // of the scores of a block

// (B, P, Nkv, d) -> (B, N, P, d): head n is key/value head n / (N / Nkv).
Tensor heads_first(const Tensor& x, int64_t heads) {
  const int64_t times = heads / x.dim(2);
  Tensor wide = cast(x, accumulate_type(x.dtype()));
  if (times > 1)
    wide = reshape(expand(unsqueeze(wide, 3), {x.dim(0), x.dim(1), x.dim(2), times, x.dim(3)}),
                   {x.dim(0), x.dim(1), heads, x.dim(3)});
  return permute(wide, {0, 2, 1, 3});
}

// One sample or several of one document each, block by block -> (B, T, N, d).
Tensor by_blocks(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMask& mask,
                 const DcmhaOptions& options, const ScoreFunctions& composed) {
  const int64_t B = q.dim(0), T = q.dim(1), N = q.dim(2), S = k.dim(1);
  const int64_t row_bytes = std::max<int64_t>(1, B * N * S * size_of(accumulate_type(q.dtype())));
  const int64_t rows = std::clamp<int64_t>(kBlockBytes / row_bytes, 1, T);
  DcmhaOptions scores;  // what a block that runs again needs of the options
  scores.scale = options.scale, scores.softcap = options.softcap;
  std::vector<Tensor> ys;
  for (int64_t t = 0; t < T; t += rows) {
    const int64_t end = std::min(T, t + rows), first = mask.first(t), last = mask.end(end - 1, S);
    const AttentionMask of_block{mask.causal, mask.window, mask.offset + t - first};
    const auto block = [=](const std::vector<Tensor>& in) {
      const TracedApart ops;
      const Tensor p = composed.probabilities(composed.scores(in[0], in[1], scores, of_block), of_block);
      ops.add_attention({.q = in[0], .k = in[1], .v = in[2], .mask = of_block}, 1, ops.flops().total());
      return cast(contiguous(permute(matmul(p, heads_first(in[2], N)), {0, 2, 1, 3})), in[0].dtype());
    };
    ys.push_back(recompute(block, {slice(q, 1, t, end), slice(k, 1, first, last), slice(v, 1, first, last)},
                           SegmentCost::twice));
  }
  return ys.size() == 1 ? ys[0] : concat(ys, 1);
}

}  // namespace

Tensor attention_scores(const Tensor& q, const Tensor& k, const DcmhaOptions& options) {
  const TracedApart product;  // add_attention() has it
  const double factor = options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  const Tensor s =
      matmul(scale(heads_first(q, q.dim(2)), factor), transpose(heads_first(slice(k, 3, 0, q.dim(3)), q.dim(2))));
  return options.softcap > 0 ? softcap(s, options.softcap) : s;
}

Tensor composed_attention(const AttentionOperands& x, const DcmhaOptions& options) {
  const AttentionMask& mask = options.mask;
  if (!options.documents) return by_blocks(x.q, x.k, x.v, mask, options, x.composed);
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  std::vector<std::vector<Tensor>> of_sample(static_cast<size_t>(B));
  for (const Document& document : *options.documents) {  // their positions are those of the keys
    const int64_t begin = std::max<int64_t>(0, document.begin), end = std::min(S, document.end);
    const int64_t t = std::max<int64_t>(0, begin - mask.offset), t_end = std::min(T, end - mask.offset);
    if (t >= t_end) continue;
    const auto part = [&](const Tensor& y, int64_t from, int64_t to) {
      return slice(slice(y, 0, document.sample, document.sample + 1), 1, from, to);
    };
    of_sample[static_cast<size_t>(document.sample)].push_back(
        by_blocks(part(x.q, t, t_end), part(x.k, begin, end), part(x.v, begin, end),
                  {mask.causal, mask.window, mask.offset + t - begin}, options, x.composed));
  }
  std::vector<Tensor> samples;
  for (const std::vector<Tensor>& parts : of_sample) samples.push_back(concat(parts, 1));
  return concat(samples, 0);
}

}  // namespace braid::nn
