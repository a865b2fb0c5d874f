#include "braid/models/eval/generate_task.h"

#include <algorithm>
#include <set>

#include "braid/models/eval/metrics.h"
#include "braid/models/eval/shots.h"
#include "braid/tensor/error.h"
#include "braid/tensor/random.h"

namespace braid::models::eval {
namespace {

const char* metric_of(MatchKind kind) {
  return kind == MatchKind::exact ? "exact_match" : kind == MatchKind::contains ? "contains" : "regex_match";
}

class GenerateTask final : public EvalTask {
 public:
  GenerateTask(const TaskTemplate& form, const std::vector<Document>& documents, const Shots& shots, int64_t limit,
               const PairEncoder& encoder, const std::vector<int32_t>& ends)
      : form_(form.generate), seed_(shots.seed) {
    how_ = {.tokenizer = &encoder.tokenizer(),
            .ends = ends,
            .stops = form_.stops,
            .max_tokens = form_.max_tokens,
            .sampling = {.temperature = form_.temperature, .top_p = form_.top_p}};
    how_.sampling.vocabulary = encoder.tokenizer().vocab_size();
    const int64_t room = encoder.longest() - form_.max_tokens;
    check(room >= 1, ErrorKind::setting, [&] {
      return str("bad value for max_tokens of task ", form.name, ": expected at most ", encoder.longest() - 1,
                 ", one less than the longest sequence, found ", form_.max_tokens,
                 "; give a template of your own (.toml) with fewer");
    });
    const std::vector<Document>& pool = shots.pool.empty() ? documents : shots.pool;
    const size_t n = limit > 0 ? std::min(documents.size(), static_cast<size_t>(limit)) : documents.size();
    for (size_t i = 0; i < n; ++i) {
      const Document& d = documents[i];
      std::string text = d.description;
      if (shots.count > 0)
        text += shots_text(form, pool, draw_shots(pool, d, static_cast<int64_t>(i), shots.count, shots.seed));
      text += d.contexts[0];
      const std::string where = str("line ", d.location.line, " of ", d.location.file);
      std::vector<int32_t> prompt = text.empty() ? std::vector{encoder.prefix()} : encoder.encode_text(text, where);
      if (const int64_t beyond = std::ssize(prompt) - room; beyond > 0) {
        prompt.erase(prompt.begin(), prompt.begin() + beyond);
        ++cut_;
      }
      prompts_.push_back(std::move(prompt));
      std::vector<std::string> right;
      for (const std::string& answer : d.choices) right.push_back(form_.target_filter(answer, d.location));
      right_.emplace_back(form_.rule, right, "the right answer on " + where);
    }
  }

  int64_t size() const override { return std::ssize(prompts_); }
  int64_t longest(int64_t item) const override {
    return std::ssize(prompts_.at(static_cast<size_t>(item))) + form_.max_tokens;
  }
  const Continuation* continuation() const override { return &how_; }
  std::vector<Sequence> sequences(int64_t item) const override {
    const std::vector<int32_t>& prompt = prompts_.at(static_cast<size_t>(item));
    const RandomKey key = child(child(RandomKey{seed_, 0}, "texts"), static_cast<uint64_t>(item));
    std::vector<Sequence> sequences;
    for (int64_t i = 0; i < form_.samples; ++i) {
      const auto at = static_cast<uint64_t>(2 * i);
      const uint64_t seed = uint64_t{random_bits(at, key)} << 32 | random_bits(at + 1, key);
      sequences.push_back({.tokens = prompt, .from = std::ssize(prompt), .seed = seed});
    }
    return sequences;
  }
  std::vector<std::optional<std::string>> answers(const ItemScores& scores) const override {
    std::vector<std::optional<std::string>> answers;
    for (const SequenceScore& score : scores) answers.push_back(form_.filter.find(score.text));
    return answers;
  }
  std::vector<std::pair<std::string, double>> verdict(int64_t item, const ItemScores& scores) const override {
    const std::vector<std::optional<std::string>> found = answers(scores);
    const RightAnswers& right = right_.at(static_cast<size_t>(item));
    const int64_t n = std::ssize(found), answered = std::ranges::count_if(found, [](auto&a) { return bool{a}; }),
                  matched = std::ranges::count_if(found, [&](auto&a) { return a && right.matches(*a); });
    const auto share = [&](int64_t k) { return static_cast<double>(k) / static_cast<double>(n); };
    std::vector<std::pair<std::string, double>> results = {{metric_of(form_.rule.kind), share(matched)}};
    if (n > 1)
      for (const int64_t k : std::set<int64_t>{1, 10, 100, n})
        if (k <= n) results.emplace_back(str("pass@", k), pass_at(k, n, matched));
    results.emplace_back("answered", share(answered));
    return results;
  }
  std::vector<Metric> metrics(std::span<const ItemScores> scores) const override {
    std::vector<std::pair<std::string, std::vector<double>>> columns;
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto results = verdict(static_cast<int64_t>(i), scores[i]);
      columns.resize(results.size());
      for (size_t c = 0; c < results.size(); ++c) {
        columns[c].first = results[c].first;
        columns[c].second.push_back(results[c].second);
      }
    }
    std::vector<Metric> metrics;
    for (const auto& [name, values] : columns) metrics.push_back(mean(name, values));
    return metrics;
  }
  std::vector<std::string> notes() const override {
    if (cut_ == 0) return {};
    return {str(cut_, " prompts were cut from the left to leave room for max_tokens = ", form_.max_tokens)};
  }

 private:
  GenerateForm form_;
  uint64_t seed_;
  Continuation how_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<RightAnswers> right_;
  int64_t cut_ = 0;
};

}  // namespace

double pass_at(int64_t k, int64_t n, int64_t right) {
  check(1 <= k && k <= n && 0 <= right && right <= n, "pass_at", "expected 1 <= k <= n and 0 <= right <= n");
  double none = 1;
  for (int64_t i = n - right + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return n - right < k ? 1 : 1 - none;
}

std::unique_ptr<EvalTask> make_generate_task(const TaskTemplate& form, const std::vector<Document>& documents,
                                             const Shots& shots, int64_t limit, const PairEncoder& encoder,
                                             const std::vector<int32_t>& ends) {
  check(form.kind == TaskKind::generate, "make_generate_task", "expected a task of kind generate");
  return std::make_unique<GenerateTask>(form, documents, shots, limit, encoder, ends);
}

}  // namespace braid::models::eval
