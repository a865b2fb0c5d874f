// Options of the attention ops of autograd/ops.h, scaled_dot_product_attention and its composed form, dcmha:
// Dynamically Composable Multi-Head Attention (arXiv 2405.08553) as one op.
//
//   S  = scale q k^T                        (B, N, T, S), with the option `softcap` c: c tanh(scale q k^T / c)
//   S' = Compose_pre(S), masked keys -> -inf, P = softmax(S'), P' = Compose_post(P), y = P' v
//
// Compose mixes the heads of a group, separately for every pair (query i, key j), all terms reading the original A:
//   O[n] = A[n] + sum_m A[m] base[m,n]
//        + sum_r (sum_m A[m] q_down[i,r,m]) q_up[i,r,n] + sum_r (sum_m A[m] k_down[j,r,m]) k_up[j,r,n]
//        + A[n] q_gate[i,n] + A[n] k_gate[j,n]
//
// Without Compose this is scaled dot-product attention: S' = S, P' = P.
//
// With the options `bias`, `attend` and `dropout`, D being x / (1 - p) where an entry is kept, else 0:
//   S' = Compose_pre(S + bias) or Compose_pre(S) + bias, masked entries -> -inf; P = softmax(S'),
//   P' = D(Compose_post(P)), masked entries -> 0
// A masked entry has no probability, also where post-compose reads heads in which it is not masked.
// A query whose entries are all masked gives zeros, and no gradient. Second derivatives, with any option, are those of
// the definition, whose scores are then stored whole.
#pragma once
#include <vector>

#include "braid/tensor/attention_operands.h"
#include "braid/tensor/random.h"

namespace braid {

enum class AttentionImpl : uint8_t {
  automatic,  // fused where the device has a kernel for the call, else chunked
  fused,      // the device's kernels, which store only a few rows of scores at a time
  chunked,    // the reference on blocks of query rows, each with only its unmasked keys
  reference,  // the definition: materialises (B, N, T, S)
};

// AttentionImpl::chunked keeps the score tensor of a block (samples x N x rows x keys) near this size: small enough for
// a processor's cache, since every op of the reference reads or writes it once, large enough to amortise the cost of a
// call.
inline constexpr int64_t kAttentionChunkBytes = 1 << 19;

// Consecutive positions [begin, end) of one sample.
struct Document {
  int64_t sample, begin, end;
};
// The documents of packed sequences, in order of samples and positions.
// positions (B, T) i32 or i64: the position of each token in its document; 0 begins a document. Error(input) names the
// first value that is neither 0 nor one more than the value before it.
std::vector<Document> documents_of(const Tensor& positions);
// The same documents with `first` subtracted from their positions.
std::vector<Document> counted_from(std::vector<Document> documents, int64_t first);

// Where causal queries stand among the keys that their sample has. It matters where T is not their number.
enum class CausalAlignment : uint8_t {
  top_left,      // query 0 at key 0: torch's is_causal
  bottom_right,  // query T - 1 at the last key: FlashAttention since 2.1
};

enum class BiasPlace : uint8_t { before_compose, after_compose };  // of the scores

struct SdpaOptions {
  AttentionMask mask = {};
  // Beside mask.offset, which is added: bottom_right adds the keys of the sample - T. Queries before the first key give
  // 0.
  CausalAlignment alignment = CausalAlignment::top_left;
  // (B): the keys that each sample has; the others do not exist and are not read. Empty: S. From a tensor (B) i64 or
  // i32: lengths.to_vector<int64_t>(). In every implementation: samples of one length that follow each other are one
  // call of the kernels.
  std::vector<int64_t> key_lengths = {};
  // With one of attend, bias, dropout and softcap, or values of another size (B, S, Nkv, dv), the call is computed in
  // blocks of query rows (chunked; memory for the scores of one block) or by the reference; `fused` is an error.
  Tensor attend = {};  // (1 or B, 1 or N, T, S) u8: 0 masks an entry, whose value must still be finite
  // (1 or B, 1 or N, T, S) of the queries' type, added to the scores; its gradient is formed. An entry of -inf masks
  // where the bias is added after Compose or without it; before Compose it must be finite.
  Tensor bias = {};
  BiasPlace bias_place = BiasPlace::before_compose;
  // Probability, in [0, 1), that an entry of P' becomes 0. Which do is a function of the key, N and the entry's sample,
  // head, query row and key alone: the same in every implementation, type and block, with more keys and more rows.
  double dropout = 0;
  RandomKey dropout_key = {};
  double scale = 0;    // of the scores; 0 means 1/sqrt(d)
  double softcap = 0;  // bound of the scores, before bias and Compose; 0: none
  AttentionImpl impl = AttentionImpl::automatic;
  int64_t chunk = 0;      // query rows of a block (chunked); 0: as many as fit the processor's cache
  int64_t workspace = 0;  // bytes of scores that `fused` may hold at a time; 0: the device's choice
  // Document masking: a query attends only to keys of its own document. Positions are those of the keys (see
  // AttentionMask), and the mask applies as if each document were a call of its own. The documents are in order of
  // samples and positions and contain every query row. Null: every sample is one document. Read during the call only.
  const std::vector<Document>* documents = nullptr;
};

// The dynamic weights of one branch of Compose, that is of one stage and one side: members of HeadMixing.
struct ComposeFactors {
  Tensor down, up;  // (B, T, G, R, M), empty for R = 0
  Tensor gate;      // (B, T, G, M)
};

struct DcmhaOptions : SdpaOptions {
  int64_t groups = 1;  // G; heads are mixed within their group
};

}  // namespace braid
