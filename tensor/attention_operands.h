// The types that every level of attention shares: which keys a query attends to, and how heads are mixed.
#pragma once
#include "braid/tensor/device_code.h"
#include "braid/tensor/tensor.h"

namespace braid {

// The keys that a query attends to. Query row t is at position t + offset, key row s at position s.
//   causal      key <= query
//   window > 0  key > query - window (causal only)
// All other keys are masked. Not causal: no key is masked. With T queries and S keys, offset 0 aligns the first query
// with the first key, S - T the last with the last. An offset beyond +-2^60 is an error.
struct AttentionMask {
  bool causal = true;
  int64_t window = 0;  // unmasked keys of a query, its own position included; 0 = no limit
  int64_t offset = 0;
  // The same mask, in whose sums of positions no i64 overflows.
  AttentionMask checked(const char* op) const {
    constexpr int64_t farthest = int64_t{1} << 60;
    check(offset >= -farthest && offset <= farthest, op,
          [this] { return str("the mask's offset ", offset, " is not within +-2^60"); });
    return {causal, window < 2 * farthest ? window : 2 * farthest, offset};
  }
  // The unmasked keys of query row t are [first(t), end(t, keys)); there are none where first >= end.
  BRAID_HD int64_t first(int64_t t) const {
    return causal && window > 0 && t + offset - window + 1 > 0 ? t + offset - window + 1 : 0;
  }
  BRAID_HD int64_t end(int64_t t, int64_t keys) const {
    return !causal || t + offset + 1 > keys ? keys : t + offset + 1 > 0 ? t + offset + 1 : 0;
  }
};

// How the product (B, T, (N + 2 Nkv) d) of a layer's input is split: all queries, all keys, all values, head-major.
struct QkvSplit {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // N, Nkv, d
  Tensor q_norm, k_norm;  // (d), weights of an RMS norm of each query and key; empty handles: none
  double norm_eps = 0;
  Tensor cosine, sine;  // (B or 1, T, rotary / 2), tables of the rotation of queries and keys; empty handles: none
};

// The role of one tensor in a call of attention.
struct AttentionRole {
  enum class Positions : uint8_t { none, queries, keys };
  const char *stage, *member;  // "pre" and "q_down"; the stage of q, k and v is ""
  Positions positions;         // what axis 1 of the tensor counts; none: the tensor has no positions
  std::string name() const { return *stage ? str(stage, ".", member) : member; }
};

// The weights of Compose (arXiv 2405.08553): how the N = G M heads are mixed once, before or after softmax. Rank R; an
// empty handle omits its term; down and up of one side come together. The formula is in autograd/dcmha.h.
//   paper  here  shape
//   w      base  (G, M, M)        static; first index: the head read
//   w1     down  (B, P, G, R, M)  dynamic, low rank: the heads read
//   w2     up    (B, P, G, R, M)  dynamic, low rank: the heads written
//   dd     gate  (B, P, G, M)     dynamic, diagonal
// q_: from the query token, P = T positions; k_: from the key token, P = S positions.
struct HeadMixing {
  Tensor base;
  Tensor q_down, q_up;
  Tensor k_down, k_up;
  Tensor q_gate, k_gate;

  // True without any term: heads are not mixed. It also serves gradients, where down may be present without up.
  bool empty() const { return !base && !q_down && !q_up && !k_down && !k_up && !q_gate && !k_gate; }

  // Calls f(role, tensors...) for every member, in a fixed order, with that member of each of `mixings`.
  template <class F, class... Mixing>
  static void for_each(const char* stage, F&& f, Mixing&... mixings) {
    using enum AttentionRole::Positions;
    f(AttentionRole{stage, "base", none}, mixings.base...);
    f(AttentionRole{stage, "q_down", queries}, mixings.q_down...);
    f(AttentionRole{stage, "q_up", queries}, mixings.q_up...);
    f(AttentionRole{stage, "k_down", keys}, mixings.k_down...);
    f(AttentionRole{stage, "k_up", keys}, mixings.k_up...);
    f(AttentionRole{stage, "q_gate", queries}, mixings.q_gate...);
    f(AttentionRole{stage, "k_gate", keys}, mixings.k_gate...);
  }
};

}  // namespace braid
