// Greedy decoding: the most likely symbol at each step. The encoder runs once per source; every step reads its keys,
// values and key-wise weights, and the decoder's own from a cache.
#pragma once
#include <functional>
#include <vector>

#include "braid/models/families/seq2seq/model.h"
#include "braid/models/families/seq2seq/pairs.h"

namespace braid::models {

// The symbols decoded for each row of source_ids (B, S), i32 on the CPU, up to the end symbol, which is not included;
// at most `max_symbols`. source_lengths: as of Seq2Seq::encode(). Ties: the first symbol. Error(numerical) when a logit
// is NaN or Inf.
std::vector<std::vector<int32_t>> decode_greedily(const Seq2Seq& model, const Tensor& source_ids, int64_t max_symbols,
                                                  const std::vector<int64_t>& source_lengths = {});

struct ExactMatch {
  int64_t pairs = 0, exact = 0;  // decoded; all symbols right, and the end
  double share() const { return pairs > 0 ? static_cast<double>(exact) / static_cast<double>(pairs) : 0; }
};
// Exact matches among these pairs. stop: polled before each batch; once true, the rest is skipped.
ExactMatch exact_match(const Seq2Seq& model, const PairTask& task, text::Split split,
                       const std::vector<std::vector<int64_t>>& batches, const std::function<bool()>& stop = {});

}  // namespace braid::models
