#include "braid/models/generation/batch.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "braid/autograd/ops.h"

namespace braid::models {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Most new tokens of a prompt: the last one needs no place in the cache.
int64_t most_new(int64_t prompt, int64_t max_tokens, int64_t longest) {
  return std::min(max_tokens, longest - prompt + 1);
}

class Group {
 public:
  Group(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts, std::vector<size_t> members,
        int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends,
        const std::function<bool(size_t, int32_t)>& accept, GeneratedBatch& out)
      : model_(model),
        prompts_(prompts),
        rows_(std::move(members)),
        max_tokens_(max_tokens),
        options_(options),
        ends_(ends),
        accept_(accept),
        out_(out) {}

  void run() {
    const auto start = std::chrono::steady_clock::now();
    const int64_t longest = model_.max_sequence_length();
    int64_t width = 0, more = 0;
    for (const size_t i : rows_) width = std::max(width, std::ssize(prompts_[i]));
    for (const size_t i : rows_) more = std::max(more, most_new(std::ssize(prompts_[i]), max_tokens_, longest));
    KvCache cache = model_.make_cache(std::min(longest, width + std::max<int64_t>(0, more - 1)));
    std::vector<int32_t> ids;
    bool uneven = false;
    for (const size_t i : rows_) {
      const std::vector<int32_t>& prompt = prompts_[i];
      const int64_t before = width - std::ssize(prompt);
      uneven = uneven || before > 0;
      cache.starts.push_back(before);
      ids.insert(ids.end(), static_cast<size_t>(before), prompt[0]);
      ids.insert(ids.end(), prompt.begin(), prompt.end());
      texts_.push_back(prompt);
      out_.prompt_tokens += std::ssize(prompt);
    }
    if (!uneven) cache.starts.clear();
    Tensor logits = next_logits(cache, from_vector(ids, {std::ssize(rows_), width}));
    out_.prompt_seconds += seconds_since(start);
    const auto steps = std::chrono::steady_clock::now();
    while (draw(cache, logits)) {
      std::vector<int32_t> last;
      for (const std::vector<int32_t>& text : texts_) last.push_back(text.back());
      logits = next_logits(cache, from_vector(last, {std::ssize(last), 1}));
      out_.steps += std::ssize(last);
    }
    out_.step_seconds += seconds_since(steps);
  }

 private:
  // Logits (rows, V) of the last position.
  Tensor next_logits(KvCache& cache, const Tensor& ids) const {
    const Tensor h = model_.hidden(ids.to(model_.device()), &cache);
    return model_.logits(contiguous(h.sliced(1, h.dim(1) - 1, h.dim(1)))).to(DType::f32).to(kCpu);
  }

  // Draws a token for every row; rows that are complete leave. false when none stays.
  bool draw(KvCache& cache, const Tensor& logits) {
    std::vector<int64_t> staying;
    for (size_t r = 0; r < rows_.size(); ++r)
      if (draw_row(r, logits)) staying.push_back(static_cast<int64_t>(r));
    if (staying.size() == rows_.size() || staying.empty()) return !staying.empty();
    cache.select(staying);
    for (size_t i = 0; i < staying.size(); ++i) {
      const auto r = static_cast<size_t>(staying[i]);
      rows_[i] = rows_[r];
      if (i != r) texts_[i] = std::move(texts_[r]);
    }
    rows_.resize(staying.size()), texts_.resize(staying.size());
    return true;
  }

  // Whether the row needs another token.
  bool draw_row(size_t r, const Tensor& logits) {
    Generated& out = out_.texts[rows_[r]];
    std::vector<int32_t>& text = texts_[r];
    const auto row = static_cast<int64_t>(r);
    SamplingOptions options = options_;
    options.seed += rows_[r];
    const auto token =
        static_cast<int32_t>(sample_token(logits.sliced(0, row, row + 1).to_vector<float>(), text, options));
    out.reason = StopReason::end_of_text;
    if (std::ranges::count(ends_, token) > 0) return false;
    out.tokens.push_back(token);
    text.push_back(token);
    out.reason = StopReason::caller;
    if (accept_ && !accept_(rows_[r], token)) return false;
    out.reason = StopReason::length;
    if (std::ssize(out.tokens) >= max_tokens_) return false;
    out.reason = StopReason::context_full;
    return std::ssize(text) <= model_.max_sequence_length();
  }

  const LanguageModel& model_;
  std::span<const std::vector<int32_t>> prompts_;
  std::vector<size_t> rows_;  // numbers of the prompts at hand
  int64_t max_tokens_;
  const SamplingOptions& options_;
  const std::vector<int32_t>& ends_;
  const std::function<bool(size_t, int32_t)>& accept_;
  GeneratedBatch& out_;
  std::vector<std::vector<int32_t>> texts_;  // of rows_
};

}  // namespace

GeneratedBatch generate_batch(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts, int64_t rows,
                              int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends,
                              const std::function<bool(size_t, int32_t)>& accept) {
  check_options(options);
  check(rows >= 1, "generate_batch", [] { return std::string("needs at least one row"); });
  for (const std::vector<int32_t>& prompt : prompts) check_prompt(model, prompt);
  GeneratedBatch out;
  out.texts.resize(prompts.size());
  if (max_tokens < 1) return out;
  const NoGrad off;
  const int64_t longest = model.max_sequence_length();
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return prompts[a].size() > prompts[b].size(); });
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    const int64_t width = std::ssize(prompts[order[begin]]);  // the longest of its group
    const auto joins = [&](size_t i) {
      const int64_t own = std::ssize(prompts[i]);
      return own == width || (model.caches_uneven_texts() && width + most_new(own, max_tokens, longest) - 1 <= longest);
    };
    for (end = begin + 1; end < order.size() && static_cast<int64_t>(end - begin) < rows && joins(order[end]);) ++end;
    Group(model, prompts,
          {order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(end)},
          max_tokens, options, ends, accept, out)
        .run();
  }
  return out;
}

}  // namespace braid::models
