// Dynamically Composable Multi-Head Attention (arXiv 2405.08553) as one op.
//
//   S  = scale q k^T                        (B, N, T, S)
//   S' = Compose_pre(S), hidden keys -> -inf, P = softmax(S'), P' = Compose_post(P), y = P' v
//
// Compose mixes the heads of a group, separately for every pair (query i, key j), all terms reading the original A:
//   O[n] = A[n] + sum_m A[m] base[m,n]
//        + sum_r (sum_m A[m] q_down[i,r,m]) q_up[i,r,n] + sum_r (sum_m A[m] k_down[j,r,m]) k_up[j,r,n]
//        + A[n] q_gate[i,n] + A[n] k_gate[j,n]
#pragma once
#include "braid/autograd/record.h"
#include "braid/tensor/kernels/attention.h"

namespace braid {

enum class Path : uint8_t {
  automatic,  // the best that serves these arguments
  fused,      // the device's fused kernel, which never holds more than some rows of scores
  chunked,    // the reference on chunks of query rows, each with only the keys that it can see
  reference,  // the meaning: materialises (B, N, T, S)
};

// Path::chunked keeps the score tensor of a chunk (samples x N x rows x keys) near this size: small enough for a
// processor's cache, since every op of the reference reads or writes it once, large enough to pay for starting the ops.
inline constexpr int64_t kDcmhaChunkBytes = 1 << 19;

struct DcmhaOptions {
  int64_t groups = 1;          // G
  AttentionMask visible = {};  // which keys a query sees
  double scale = 0;            // of the scores; 0 means 1/sqrt(d)
  Path path = Path::automatic;
  int64_t chunk = 0;      // query rows per chunk (Path::chunked); 0: what fits the processor's cache
  int64_t workspace = 0;  // bytes of scores that Path::fused may hold at a time; 0: the device's choice
};

// q (B, T, N, d); k, v (B, S, Nkv, d) with Nkv dividing N (grouped key/value heads); result (B, T, N, d).
// A query that sees no key gives zeros. Differentiable in every tensor on every path.
Tensor dcmha(const Tensor& q, const Tensor& k, const Tensor& v, const Compose& pre, const Compose& post,
             const DcmhaOptions& options = {});
Tensor dcmha_reference(const Tensor& q, const Tensor& k, const Tensor& v, const Compose& pre, const Compose& post,
                       const DcmhaOptions& options = {});

}  // namespace braid
