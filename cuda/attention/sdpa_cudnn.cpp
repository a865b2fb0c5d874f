// Which calls cuDNN can be asked for, and in what pieces.
//
// Backward must give the same bits every time. The way of cuDNN's that does writes dS of a call to memory, B N T S
// numbers: so a call has as many samples and heads as the workspace allows, at least the query heads of one key/value
// head of one sample.
#include "braid/cuda/attention/sdpa_cudnn.h"

#include <bit>

namespace braid::cuda::plain_attention {

namespace {

bool any(const Compose& c) { return c.base || c.q_down || c.q_up || c.k_down || c.k_up || c.q_gate || c.k_gate; }

// Why no call is made of these inputs; "" when one is.
std::string refuses(const DcmhaInputs& x) {
  const int64_t T = x.q.dim(1), S = x.k.dim(1), d = x.q.dim(3);
  const AttentionMask& visible = x.visible;
  if (any(x.pre) || any(x.post)) return "cuDNN cannot mix heads";
  if (size_of(x.q.dtype()) != 2) return "cuDNN's attention needs bf16 or f16, the queries are " + str(x.q.dtype());
  if (x.q.numel() == 0 || x.k.numel() == 0) return "there are no elements";
  if (d % 8 != 0 || d > 256)
    return "cuDNN's attention needs a head size that is a multiple of 8 and at most 256, here is d = " +
           std::to_string(d);
  if (visible.causal && visible.offset != 0 && visible.offset != S - T)
    return "cuDNN's attention needs the first or the last query to stand beside the first or the last key, here " +
           std::to_string(T) + " queries begin at position " + std::to_string(visible.offset) + " of " +
           std::to_string(S) + " keys";
  if (visible.causal && T > S && (visible.offset != 0 || visible.window > 0))
    return "some of the " + std::to_string(T) + " queries may see none of the " + std::to_string(S) + " keys";
  return "";
}

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

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

// The samples [b, b + samples) and heads [n, n + heads) of x.
Tensor part(const Tensor& x, int64_t b, int64_t samples, int64_t n, int64_t heads) {
  return x.sliced(0, b, b + samples).sliced(2, n, n + heads);
}

}  // namespace

std::string forward(const DcmhaInputs& x, Out y, Out lse) {
  if (std::string reason = refuses(x); !reason.empty()) return reason;
  const Tensor sums = empty({x.q.dim(0), x.q.dim(2), x.q.dim(1)}, DType::f32, x.q.device());
  std::string reason = run_attention({.q = laid_out(x.q),
                                      .k = laid_out(x.k),
                                      .v = laid_out(x.v),
                                      .y = y,
                                      .lse = sums,
                                      .dy = {},
                                      .dq = {},
                                      .dk = {},
                                      .dv = {},
                                      .visible = x.visible,
                                      .scale = x.scale});
  if (reason.empty() && lse) lse.copy_(sums.transposed(1, 2));
  return reason;
}

std::string backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients, int64_t workspace) {
  if (std::string reason = refuses(x); !reason.empty()) return reason;
  const int64_t B = x.q.dim(0), N = x.q.dim(2), Nkv = x.k.dim(2), share = N / Nkv;
  const int64_t bytes = 2 * share * round_up(x.q.dim(1), 64) * round_up(x.k.dim(1), 128);
  if (bytes > workspace)
    return "cuDNN's attention needs " + std::to_string(bytes) + " bytes of workspace for one key/value head of a " +
           "sample, " + std::to_string(workspace) + " are allowed";
  const int64_t heads = largest_divisor(Nkv, workspace / bytes);
  const int64_t samples = heads < Nkv ? 1 : largest_divisor(B, workspace / (bytes * Nkv));
  auto wanted = [](const Tensor& gradient, const Tensor& like) { return gradient ? gradient : empty_like(like); };
  AttentionCall all{.q = laid_out(x.q),
                    .k = laid_out(x.k),
                    .v = laid_out(x.v),
                    .y = laid_out(y),
                    .lse = {},
                    .dy = laid_out(dy),
                    .dq = wanted(gradients.q, x.q),
                    .dk = wanted(gradients.k, x.k),
                    .dv = wanted(gradients.v, x.v),
                    .visible = x.visible,
                    .scale = x.scale};
  for (int64_t b = 0; b < B; b += samples) {
    for (int64_t n = 0; n < Nkv; n += heads) {
      AttentionCall call = all;
      for (Tensor* t : {&call.q, &call.y, &call.dy, &call.dq}) *t = part(*t, b, samples, n * share, heads * share);
      for (Tensor* t : {&call.k, &call.v, &call.dk, &call.dv}) *t = part(*t, b, samples, n, heads);
      call.lse = part(lse, b, samples, n * share, heads * share).transposed(1, 2).clone();
      if (std::string reason = run_attention(call); !reason.empty()) return reason;
    }
  }
  return "";
}

}  // namespace braid::cuda::plain_attention
