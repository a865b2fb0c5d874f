// The frame of losses of x = h W^T, h (R, D), W (V, D), that hold the logits of one chunk of rows at a time:
// linear_cross_entropy and its vocabulary-parallel form. For every chunk
//   x = h W^T,   the caller computes the loss and replaces x by dx,   dh = dx W,   dW = sum over chunks of dx^T h
// With a softcap c the caller gets y = c tanh(x / c) and replaces it by dy; dx = (1 - tanh(x / c)^2) dy.
// The gradients are formed in the forward pass, while the chunk's logits are in memory; backward multiplies them by dy.
// With 16-bit inputs loss and gradients are f32 (the gradients rounded once, at the end). The logits are f32 too, and
// dx is rounded for its products. Where the device says so (LossKernels::bf16_logits), the logits of bf16 inputs and dx
// are bf16: on a GPU they are most of the memory that the loss moves. Their rows begin at multiples of
// LossKernels::row_multiple elements, so that products read aligned rows whatever the vocabulary is.
#pragma once
#include <functional>

#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/losses.h"

namespace braid::detail {

// The products x of the loss for hidden (..., D): (..., V), of 16-bit inputs in f32 and not rounded. Without
// derivative.
Tensor wide_linear(const Tensor& hidden, const Tensor& weight);

class LinearLoss {
 public:
  // hidden (..., D), weight (V, D). op: for the messages about bad options.
  LinearLoss(const char* op, const Tensor& hidden, const Tensor& weight, const LinearLossOptions& options);
  DType type() const { return type_; }                     // of loss and gradients
  int64_t rows() const { return h_.dim(0); }               // R
  bool gradients() const { return dhidden_ || dweight_; }  // whether the chunk function must replace them

  // chunk(begin, end, logits): rows [begin, end) and their logits (end - begin, V); the rows may lie apart.
  void for_each_chunk(const std::function<void(int64_t begin, int64_t end, Tensor& logits)>& chunk);
  // loss () with its derivative; once, after for_each_chunk(). composed: the loss of {hidden, weight, targets} by ops
  // that record, for second derivatives; without it there are none.
  Tensor record(const Tensor& loss, Composed composed = {}, const Tensor& targets = {});

 private:
  Tensor padded(int64_t rows, DType type) const;  // (rows, at least V), uninitialised
  Tensor logits_of(const Tensor& padded) const { return padded.sliced(1, 0, w_.dim(0)); }  // (rows, V)

  const char* op_;

  Tensor hidden_, weight_;    // the inputs
  Tensor h_, w_;              // (R, D), (V, D), contiguous
  Tensor dhidden_, dweight_;  // empty when there is no gradient to compute
  DType type_;
  LinearLossOptions options_;
};

}  // namespace braid::detail
