// A model of bytes for evaluation, and scores of its tokens by the full logits.
#pragma once
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/models/eval/eval_task.h"
#include "tests/models/support.h"

namespace braid::test {

inline models::Dcformer eval_model(int64_t longest = 64) {
  models::DcformerConfig config = small_config();
  config.block_size = longest;
  config.initializer_std = 0.3;
  models::resolve(config);
  return models::Dcformer(config, {3, 0});
}

// By log_softmax in double precision of all logits of the sequence by itself.
inline models::eval::SequenceScore direct_score(const models::LanguageModel& model,
                                                const models::eval::Sequence& sequence) {
  NoGrad off;
  const int64_t T = std::ssize(sequence.tokens), V = model.vocab_size();
  const Tensor logits = model.logits(model.hidden(from_vector(sequence.tokens, {1, T})));  // (1, T, V)
  const std::vector<double> rows = logits.to(DType::f64).to_vector<double>();
  models::eval::SequenceScore score;
  for (int64_t t = sequence.from; t < T; ++t) {
    const double* row = rows.data() + (t - 1) * V;
    const double largest = *std::max_element(row, row + V);
    double total = 0;
    for (int64_t v = 0; v < V; ++v) total += std::exp(row[v] - largest);
    const double logit = row[sequence.tokens[static_cast<size_t>(t)]];
    score.logprob += logit - largest - std::log(total);
    score.greedy.push_back(logit == largest);
  }
  return score;
}

inline double metric(const std::vector<models::eval::Metric>& metrics, const std::string& name) {
  for (const models::eval::Metric& m : metrics)
    if (m.name == name) return m.value;
  throw std::runtime_error("no metric " + name);
}

}  // namespace braid::test
