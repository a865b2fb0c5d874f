#include "braid/models/eval/icl_tasks.h"

#include <algorithm>

#include "braid/autograd/ops.h"

namespace braid::models {

namespace {
constexpr size_t kBatch = 8;

// The most likely id below `vocabulary` at each place of logits (B, T, V), row after row.
std::vector<int64_t> likeliest(const Tensor& logits, int64_t vocabulary) {
  const Tensor known = vocabulary < logits.dim(2) ? contiguous(slice(logits, 2, 0, vocabulary)) : logits;
  check(nn::all_finite(known), ErrorKind::numerical,
        "the in-context tasks cannot be graded: the model's logits contain NaN or Inf; compute in a "
        "wider type (f32, f64), or use an earlier checkpoint");
  return argmax(known).to_vector<int64_t>();
}

// The last `longest` tokens of a sample, with the answers in them that can be predicted.
text::TaskTokens last_tokens(const text::Tokenizer& tokenizer, const text::TaskSample& sample, int64_t longest) {
  text::TaskTokens row = text::tokenize_task(tokenizer, sample);
  const int64_t cut = std::max<int64_t>(0, static_cast<int64_t>(row.tokens.size()) - longest);
  row.tokens.erase(row.tokens.begin(), row.tokens.begin() + cut);
  for (text::ByteSpan& a : row.answers) a = {a.begin - cut, a.end - cut};
  // An answer needs a token before it to be predicted from.
  std::erase_if(row.answers, [](const text::ByteSpan& a) { return a.begin < 1; });
  return row;
}
}  // namespace

int64_t count_gradable_answers(const text::Tokenizer& tokenizer, std::span<const text::TaskSample> samples,
                               int64_t longest) {
  size_t answers = 0;
  for (const text::TaskSample& sample : samples) answers += last_tokens(tokenizer, sample, longest).answers.size();
  return static_cast<int64_t>(answers);
}

text::TaskGrader grade_tasks(const LanguageModel& model, const text::Tokenizer& tokenizer,
                             std::span<const text::TaskSample> samples, const std::function<bool()>& stop) {
  NoGrad off;
  text::TaskGrader grader;
  for (size_t begin = 0; begin < samples.size() && !(stop && stop()); begin += kBatch) {
    size_t end = std::min(samples.size(), begin + kBatch);
    std::vector<text::TaskTokens> rows;
    int64_t longest = 0;
    for (size_t i = begin; i < end; ++i) {
      rows.push_back(last_tokens(tokenizer, samples[i], model.max_sequence_length()));
      longest = std::max(longest, static_cast<int64_t>(rows.back().tokens.size()));
    }
    // Rows are filled up on the right: a causal model masks the padding.
    auto B = static_cast<int64_t>(rows.size());
    std::vector<int32_t> ids(static_cast<size_t>(B * longest), std::max(tokenizer.pad_id(), 0));
    for (int64_t b = 0; b < B; ++b) std::ranges::copy(rows[static_cast<size_t>(b)].tokens, ids.begin() + b * longest);
    Tensor h = model.hidden(from_vector(ids, {B, longest}, model.device()));
    const std::vector<int64_t> likely = likeliest(model.logits(h), tokenizer.vocab_size());
    for (int64_t b = 0; b < B; ++b) {
      const text::TaskTokens& row = rows[static_cast<size_t>(b)];
      std::vector<uint8_t> right(row.tokens.size(), 0);
      for (size_t t = 1; t < right.size(); ++t)
        right[t] = likely[static_cast<size_t>(b * longest) + t - 1] == row.tokens[t];
      grader.add(samples[begin + static_cast<size_t>(b)].task, row.answers, right);
    }
  }
  return grader;
}

}  // namespace braid::models
