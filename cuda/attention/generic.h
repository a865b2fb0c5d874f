// The generic path of attention: any type, any mixing, any number of heads and groups. cuda/attention/generic.cpp
// splits the query rows and calls the functions of this header, generic*.cu define them.
//
// Scores of a block are (samples, N, rows, keys) in the type of the inputs, rows `pitch` elements apart. The key side
// of a stage comes laid out with the keys last: k_down, k_up (B, G, R, M, S), k_gate (B, G, M, S), contiguous.
#pragma once
#include "braid/tensor/kernels/attention.h"

namespace braid::cuda::attention::generic {

// Why these kernels do not serve the call.
std::optional<std::string> unsupported_reason(const DcmhaInputs& x);

// As in the contract of dcmha_forward and dcmha_backward. lse may be an empty handle. The rows of a call are computed
// in blocks whose scores fit into `workspace` bytes; at least one row of one sample.
void forward(const DcmhaInputs& x, Out y, Out lse, int64_t workspace);
// In backward an empty lse is computed again: another kernel's is that of scores which were not rounded to 16 bits, so
// the rows of P here would not add up to 1.
void backward(const DcmhaInputs& x, In lse, In dy, DcmhaGradients& gradients, int64_t workspace);

// ---- between the products: generic.cu ----

struct ScoreBlock : QueryBlock {
  int64_t pitch;
  int64_t T, S, G, M;  // of the call
  AttentionMask mask;
};

// lse = log sum_j exp(Compose(scores)), in its place in (B, T, N); +inf where all keys of a row are masked.
void softmax_lse(const ScoreBlock& block, const HeadMixing& pre, In scores, Out lse);
// P' = Compose_post(exp(Compose_pre(scores) - lse)), 0 where masked. It may be the same tensor as scores.
void scores_to_probabilities(const ScoreBlock& block, const HeadMixing& pre, const HeadMixing& post, In scores, In lse,
                             Out probabilities);
// x = Compose(x), in place; 0 stays 0.
void compose(const ScoreBlock& block, const HeadMixing& stage, Out x);

// Backward through post-compose and softmax, in place: d starts as the gradient of P', ends as the gradient of
// Compose_pre(scores).
//   dP = Compose_post^T(d),   d = P (dP - delta),   delta = sum_j P dP
void softmax_backward(const ScoreBlock& block, const HeadMixing& post_transposed, In probabilities, Out d);

// The same linear map read backwards: the gradient of its input is the transposed compose of that of its output.
HeadMixing transposed(const HeadMixing& stage);

// ---- gradients of a stage O = Compose(A), given d = dO: generic_gradients.cu ----

// `sums` lie like the stage, f32 (f64 for f64), and are added to. Empty handles are not required; k_down and k_up come
// together.
void key_gradients(const ScoreBlock& block, const HeadMixing& stage, In a, In d, HeadMixing& sums);
// The rest comes from outer (samples, G, rows, M, M) = sum_j A[m] dO[n], f32 (f64 for f64).
void query_gradients(const ScoreBlock& block, const HeadMixing& stage, In outer, HeadMixing& gradients);  // written
void base_gradient(const ScoreBlock& block, In outer, Out sum);  // (G, M, M), added to

}  // namespace braid::cuda::attention::generic
