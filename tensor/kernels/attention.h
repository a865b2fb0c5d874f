// What the attention kernels of a device are given: dynamically composed attention of heads (arXiv 2405.08553), with
// plain multi-head attention as the case without compose. The formula stands at the head of autograd/attention.h.
#pragma once
#include "braid/tensor/device_code.h"
#include "braid/tensor/kernels/kernel.h"

namespace braid {

// Which keys a query may see. Query row t stands at position t + offset, key row s at position s.
// Visible: causal  =>  key <= query;   window > 0  =>  key > query - window.   Not causal: every key.
struct AttentionMask {
  bool causal = true;
  int64_t window = 0;  // number of visible keys including the query's own position; 0 = no limit
  int64_t offset = 0;
  BRAID_HD int64_t first(int64_t t) const {
    return causal && window > 0 && t + offset - window + 1 > 0 ? t + offset - window + 1 : 0;
  }
  BRAID_HD int64_t end(int64_t t, int64_t keys) const {
    return !causal || t + offset + 1 > keys ? keys : t + offset + 1 > 0 ? t + offset + 1 : 0;
  }
};

// How heads are mixed, once before and once after softmax. N = G M heads, rank R. Any member may be an empty handle:
// its term is left out; down and up of one side come together.
struct Compose {
  Tensor base;            // (G, M, M)        static; first index = head read
  Tensor q_down, q_up;    // (B, T, G, R, M)  from the query token: heads read, heads written
  Tensor k_down, k_up;    // (B, S, G, R, M)  from the key token
  Tensor q_gate, k_gate;  // (B, T, G, M), (B, S, G, M)
};

// Bytes for scores and what belongs to them that a card takes when it may choose; a call's rows are worked off in
// chunks that fit.
inline constexpr int64_t kDcmhaWorkspace = 256 << 20;

// q (B, T, N, d); k, v (B, S, Nkv, d). The last axis of every tensor is contiguous, the others may have any strides.
struct DcmhaInputs {
  Tensor q, k, v;
  Compose pre, post;
  int64_t groups;
  AttentionMask visible;
  double scale;           // of the scores
  int64_t workspace = 0;  // bytes of scores that a card may hold at a time; 0: its own choice, kDcmhaWorkspace
};

// Gradients, contiguous, shaped like the inputs; an empty handle: not wanted.
struct DcmhaGradients {
  Tensor q, k, v;
  Compose pre, post;
};

// No kernel holds more than some rows of scores at a time. lse (B, T, N), f32 (f64 for f64): log of the sum of
// exp(scores), +inf where a row attends to no key; an empty handle when no derivative is needed.
struct AttentionKernels {
  Kernel<"dcmha_forward", void(const DcmhaInputs& x, Out y, Out lse)> forward;
  Kernel<"dcmha_backward", void(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients)> backward;
  // "", or why these kernels do not support such a call; empty: they support every call.
  Kernel<"dcmha_unsupported_reason", std::string(const DcmhaInputs& x)> unsupported_reason;
  bool takes_16_bits = false;  // they take bf16 and f16 as they are; otherwise such inputs come as f32
};

namespace cpu {
extern constinit const AttentionKernels attention_kernels;  // tensor/cpu/attention/attention.cpp
}
namespace cuda {
extern constinit const AttentionKernels attention_kernels;  // cuda/attention/generic.cpp
}

}  // namespace braid
