// Perplexity of texts, in windows that the model's longest sequence holds. LL is the sum of log p (natural logarithm)
// over every token of every text; the items are the windows.
//
//   token_perplexity = exp(-LL / tokens)   byte_perplexity = exp(-LL / bytes)   word_perplexity = exp(-LL / words)
//   bits_per_byte = -LL / (bytes ln 2)
//
// Bytes are those of the text as it was read, before any filter; words what Python counts as re.split(r"\s+", text).
// Standard errors: the windows count as independent, with bytes and words in proportion to tokens.
#pragma once
#include <memory>
#include <vector>

#include "braid/models/eval/documents.h"
#include "braid/models/eval/encode_pair.h"
#include "braid/models/eval/eval_task.h"

namespace braid::models::eval {

// stride: of the windows (encode_pair.h); 0: disjoint ones. limit: the first so many texts; 0: all.
std::unique_ptr<EvalTask> make_text_task(const std::vector<TextDocument>& texts, const PairEncoder& encoder,
                                         int64_t stride, int64_t limit);

}  // namespace braid::models::eval
