// The batched products of DCMHA on tensor cores: views of scores and of q, k, v, dy and their gradients for which the
// samples, heads and windows of a block are one batch axis, so that a product is one call.
#pragma once
#include <vector>

#include "braid/cuda/attention/score_blocks.h"
#include "braid/tensor/tensor.h"

namespace braid::cuda::attention::tensor_core {

// Rows of (B, P, heads, d) in memory: the first one, and the strides of samples, heads and rows; d is contiguous.
class HeadRows {
 public:
  HeadRows() = default;
  HeadRows(Tensor memory, int64_t heads, int64_t first, int64_t sample, int64_t head, int64_t row)
      : memory_(std::move(memory)), heads_(heads), first_(first), sample_(sample), head_(head), row_(row) {}
  // `count` rows from `begin` on of a block's samples: (samples, Nkv, N / Nkv, count, d). Of windows those of each
  // panel, which are panel_rows apart: (samples, Nkv, N / Nkv, panels, count, d).
  Tensor of(const ScoreBlock& c, const Sizes& n, int64_t begin, int64_t count) const;
  // The first `count` rows of all samples, (B, count, heads, d).
  Tensor all(const Sizes& n, int64_t count) const;

 private:
  Tensor memory_;
  int64_t heads_ = 0, first_ = 0, sample_ = 0, head_ = 0, row_ = 0;
};

// The tensors that the products of a call read. What does not lie heads first in memory, (B, T, N, d) with the strides
// of a contiguous (B, N, T, d), is copied. For windows all are, into one buffer, with the heads of k and v repeated for
// those of q, and with zeros before, between and behind them, since the first windows read before the first key and the
// last keys read behind the last window.
std::vector<HeadRows> operands(const std::vector<Tensor>& tensors, const Sizes& n, const ScoreBlock& c);

// A result (B, T, N, d) of products: its own memory where that lies heads first, otherwise a copy.
class HeadRowsResult {
 public:
  HeadRowsResult() = default;
  HeadRowsResult(Tensor& result, const Sizes& n, const ScoreBlock& c);
  const HeadRows& rows() const { return rows_; }
  void finish(const Sizes& n);

 private:
  HeadRows rows_;
  Tensor* result_ = nullptr;  // what a copy goes to
};

// Scores of any block, bf16, in one buffer.
class Scores {
 public:
  Scores(const std::vector<ScoreBlock>& blocks, const Sizes& n, Device device);
  bfloat16* data() { return buffer_.mutable_data<bfloat16>(); }
  // this = alpha x z^T, x of queries, z of keys; with zeros in the columns beyond the last key.
  void product(const ScoreBlock& c, const HeadRows& x, const HeadRows& z, double alpha) const;
  // y = alpha this x, x of keys, y of queries.
  void times_keys(const ScoreBlock& c, const HeadRows& x, double alpha, const HeadRows& y) const;
  // y = alpha this^T x for key/value head i of each group, or y += alpha this^T x; x of queries, y of keys.
  void transposed_times(const ScoreBlock& c, const HeadRows& x, double alpha, bool accumulate, const HeadRows& y) const;
  // Zeros behind the last window, before transposed_times.
  void end_windows(const ScoreBlock& c);

 private:
  Tensor rows(const ScoreBlock& c, int64_t begin, int64_t count, int64_t column, int64_t columns) const;
  const Sizes n_;
  Tensor buffer_;
};

// Gradient of keys or of values, (B, S, Nkv, d): a sum over the query heads of a key/value head, and over blocks where
// a sample has several; then it is kept in f32.
class KeySum {
 public:
  KeySum(const std::vector<ScoreBlock>& blocks, Tensor& gradient, const Sizes& n);
  // += alpha scores^T x
  void add(const ScoreBlock& c, const Scores& scores, const HeadRows& x, double alpha);
  void finish();

 private:
  const Sizes n_;
  Tensor& gradient_;
  bool direct_ = true;
  HeadRowsResult result_;
  Tensor sum_;
};

}  // namespace braid::cuda::attention::tensor_core
