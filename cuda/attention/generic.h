// What the parts of attention on the card agree on: cuda/attention/generic.cpp cuts a call into chunks and calls these
// functions, cuda/kernels/dcmha*.cu define them.
//
// Scores of a chunk are (samples, N, rows, keys) in the type of the inputs, rows `pitch` elements apart. The key side
// of a stage comes laid out with the keys last: k_down, k_up (B, G, R, M, S), k_gate (B, G, M, S), contiguous.
#pragma once
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda::dcmha {

// Some samples, some of their query rows, and the keys that those rows can see.
struct Chunk {
  int64_t b0, samples, t0, rows, s0, keys;
  int64_t pitch;
  int64_t T, S, G, M;  // of the whole call
  AttentionMask visible;
};

// lse = log sum_j exp(Compose(scores)), in its place in (B, T, N); +inf where a row sees no key.
void normalise(const Chunk& chunk, const Compose& pre, In scores, Out lse);
// weights = Compose_post(exp(Compose_pre(scores) - lse)), 0 where hidden. weights may be the same tensor as scores.
void weigh(const Chunk& chunk, const Compose& pre, const Compose& post, In scores, In lse, Out weights);
// x = Compose(x), in place; 0 stays 0.
void compose(const Chunk& chunk, const Compose& stage, Out x);

// Backward through post-compose and softmax, in place: d starts as the gradient of the weights, ends as the gradient of
// Compose_pre(scores).
//   dP = Compose_post^T(d),   d = P (dP - delta),   delta = sum_j P dP
void softmax_backward(const Chunk& chunk, const Compose& post_transposed, In probabilities, Out d);
// Gradients of a stage O = Compose(A), given d = dO. `sums` lie like the stage, f32 (f64 for f64), and are added to.
// Empty handles are not wanted; k_down and k_up come together.
void key_gradients(const Chunk& chunk, const Compose& stage, In a, In d, Compose& sums);
// The rest comes from gram (samples, G, rows, M, M) = sum_j A[m] dO[n], f32 (f64 for f64).
void query_gradients(const Chunk& chunk, const Compose& stage, In gram, Compose& gradients);  // written, contiguous
void base_gradient(const Chunk& chunk, In gram, Out sum);                                     // (G, M, M), added to

// The same linear map read backwards: the gradient of its input is the transposed compose of that of its output.
Compose transposed(const Compose& stage);

// "", or why these kernels do not serve such a call.
std::string refuses(const DcmhaInputs& x);

// A few query rows against a cache, without derivative: everything in one pass over the keys, one over the values.
bool decodes(const DcmhaInputs& x);
void decode(const DcmhaInputs& x, Out y);

}  // namespace braid::cuda::dcmha
