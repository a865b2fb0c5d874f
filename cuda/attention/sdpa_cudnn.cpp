// Which calls cuDNN supports, and their pieces.
//
// Backward must give the same bits every time. cuDNN's deterministic backward writes dS of a call to memory, B N T S
// elements: so a call has as many samples and heads as the workspace allows, at least the query heads of one key/value
// head of one sample.
#include "braid/cuda/attention/sdpa_cudnn.h"
#include "braid/cuda/runtime/graph.h"
#include "braid/tensor/base/integers.h"

#include <bit>

namespace braid::cuda::attention::sdpa_cudnn {

namespace {

// x, or a copy that is laid out as cuDNN needs it.
Tensor laid_out(const Tensor& x) {
  const int64_t size = size_of(x.dtype());
  uint64_t all = std::bit_cast<uintptr_t>(x.raw());
  for (int axis = 0; axis < 3; ++axis) all |= static_cast<uint64_t>(x.strides()[axis] * size);
  return all % 16 == 0 && x.strides()[3] == 1 ? x : x.clone();
}

int64_t largest_divisor(int64_t number, int64_t at_most) {
  int64_t divisor = std::min(number, std::max<int64_t>(at_most, 1));
  while (number % divisor != 0) --divisor;
  return divisor;
}

using detail::round_up;

// The samples [b, b + samples) and heads [n, n + heads) of x.
Tensor part(const Tensor& x, int64_t b, int64_t samples, int64_t n, int64_t heads) {
  return x.sliced(0, b, b + samples).sliced(2, n, n + heads);
}

// Bytes of the gradients of one key/value head of a sample.
int64_t head_bytes(const DcmhaInputs& x) { return gradient_bytes(x.q.dim(2) / x.k.dim(2), x.q.dim(1), x.k.dim(1)); }

}  // namespace

void check_may_plan(const AttentionCall& call) {
  check(!capturing(), "attention", [&] {
    return str(
        "attention of ", call.q.shape(), " queries and ", call.k.shape(),
        " keys is new while a graph is captured, but cuDNN makes its kernel outside of captures only; run the work "
        "once before it is captured");
  });
}

int64_t gradient_bytes(int64_t heads, int64_t T, int64_t S) { return 2 * heads * round_up(T, 64) * round_up(S, 128); }

std::optional<std::string> unsupported_reason(const DcmhaInputs& x) {
  const int64_t T = x.q.dim(1), S = x.k.dim(1), d = x.q.dim(3);
  const AttentionMask& mask = x.mask;
  if (!x.pre.empty() || !x.post.empty()) return "cuDNN cannot mix heads";
  if (size_of(x.q.dtype()) != 2) return str("cuDNN's attention needs bf16 or f16, the queries are ", x.q.dtype());
  if (x.q.numel() == 0 || x.k.numel() == 0) return "there are no elements";
  if (d % 8 != 0 || d > 256)
    return str("cuDNN's attention needs a head size that is a multiple of 8 and at most 256, here is d = ", d);
  if (mask.causal && mask.offset != 0 && mask.offset != S - T)
    return str("cuDNN's attention needs the first or the last query to stand beside the first or the last key, here ",
               T, " queries begin at position ", mask.offset, " of ", S, " keys");
  if (mask.causal && T > S && (mask.offset != 0 || mask.window > 0))
    return str("some of the ", T, " queries may have all of the ", S, " keys masked");
  // A kernel is compiled for each length, which takes most of a second: too long for a document or a prompt, whose
  // length hardly any other has.
  if (x.q.dim(0) == 1 && (T % 64 != 0 || S % 64 != 0))
    return str("cuDNN's attention of a single sequence is for lengths that are multiples of 64, here are ", T,
               " queries and ", S, " keys");
  return std::nullopt;
}

std::optional<std::string> backward_unsupported_reason(const DcmhaInputs& x, int64_t workspace) {
  const int64_t bytes = head_bytes(x);
  if (bytes > workspace)
    return str("cuDNN's attention needs ", bytes, " bytes of workspace for one key/value head of a sample, ", workspace,
               " are allowed");
  return std::nullopt;
}

std::optional<std::string> forward(const DcmhaInputs& x, Out y, Out lse) {
  const Tensor sums = empty({x.q.dim(0), x.q.dim(2), x.q.dim(1)}, DType::f32, x.q.device());
  const std::optional<std::string> no_plan = run_attention({.q = laid_out(x.q),
                                                            .k = laid_out(x.k),
                                                            .v = laid_out(x.v),
                                                            .y = y,
                                                            .lse = sums,
                                                            .dy = {},
                                                            .dq = {},
                                                            .dk = {},
                                                            .dv = {},
                                                            .mask = x.mask,
                                                            .scale = x.scale});
  if (!no_plan && lse) lse.copy_(sums.transposed(1, 2));
  return no_plan;
}

std::optional<std::string> backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients,
                                    int64_t workspace) {
  const int64_t B = x.q.dim(0), N = x.q.dim(2), Nkv = x.k.dim(2), share = N / Nkv;
  const int64_t bytes = head_bytes(x);
  const int64_t heads = largest_divisor(Nkv, workspace / bytes);
  const int64_t samples = heads < Nkv ? 1 : largest_divisor(B, workspace / (bytes * Nkv));
  auto gradient_or_scratch = [](const Tensor& gradient, const Tensor& like) {
    return gradient ? gradient : empty_like(like);
  };
  AttentionCall all{.q = laid_out(x.q),
                    .k = laid_out(x.k),
                    .v = laid_out(x.v),
                    .y = laid_out(y),
                    .lse = {},
                    .dy = laid_out(dy),
                    .dq = gradient_or_scratch(gradients.q, x.q),
                    .dk = gradient_or_scratch(gradients.k, x.k),
                    .dv = gradient_or_scratch(gradients.v, x.v),
                    .mask = x.mask,
                    .scale = x.scale};
  for (int64_t b = 0; b < B; b += samples) {
    for (int64_t n = 0; n < Nkv; n += heads) {
      AttentionCall call = all;
      for (Tensor* t : {&call.q, &call.y, &call.dy, &call.dq}) *t = part(*t, b, samples, n * share, heads * share);
      for (Tensor* t : {&call.k, &call.v, &call.dk, &call.dv}) *t = part(*t, b, samples, n, heads);
      call.lse = part(lse, b, samples, n * share, heads * share).transposed(1, 2).clone();
      const std::optional<std::string> no_plan = run_attention(call);
      if (no_plan) return no_plan;
    }
  }
  return std::nullopt;
}

}  // namespace braid::cuda::attention::sdpa_cudnn
