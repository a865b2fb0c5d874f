#include "braid/models/eval/document_tasks.h"

#include <algorithm>

#include "braid/models/eval/metrics.h"
#include "braid/models/eval/python_text.h"
#include "braid/models/eval/shots.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {
namespace {

class DocumentTask : public EvalTask {
 public:
  DocumentTask(const TaskTemplate& form, std::vector<Document> documents, const Shots& shots, int64_t limit,
               PairEncoder& encoder) {
    const std::vector<Document>& pool = shots.pool.empty() ? documents : shots.pool;
    const size_t n = limit > 0 ? std::min(documents.size(), static_cast<size_t>(limit)) : documents.size();
    const int64_t cut_before = encoder.cut_contexts();
    for (size_t i = 0; i < n; ++i) {
      const Document& document = documents[i];
      std::string examples;
      if (shots.count > 0)
        examples = shots_text(form, pool, draw_shots(pool, document, static_cast<int64_t>(i), shots.count, shots.seed));
      std::vector<Sequence> sequences;
      for (size_t c = 0; c < document.choices.size(); ++c) {
        const std::string where =
            str("choice ", c, " of line ", document.location.line, " of ", document.location.file);
        double_space_ += rstrip(form.delimiter).size() < form.delimiter.size() &&
                         lstrip(document.choices[c]).size() < document.choices[c].size();
        sequences.push_back(encoder.encode(document.description + examples + document.contexts[c],
                                           form.delimiter + document.choices[c], where));
      }
      sequences_.push_back(std::move(sequences));
    }
    cut_ = encoder.cut_contexts() - cut_before;
    delimiter_ = detail::preview(form.delimiter);
    documents.resize(n);
    documents_ = std::move(documents);
  }

  int64_t size() const override { return std::ssize(sequences_); }
  std::vector<Sequence> sequences(int64_t item) const override { return sequences_.at(static_cast<size_t>(item)); }
  int64_t longest(int64_t item) const override {
    int64_t longest = 0;
    for (const Sequence& s : sequences_.at(static_cast<size_t>(item)))
      longest = std::max(longest, std::ssize(s.tokens));
    return longest;
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    if (cut_ > 0) notes.push_back(str(cut_, " contexts were cut from the left to fit the longest sequence"));
    if (double_space_ > 0)
      notes.push_back(str(double_space_, " choices begin with white space, and the delimiter '", delimiter_,
                          "' stands before them: leave one of them out (delimiter = \"\" in a template)"));
    return notes;
  }

 protected:
  const Document& document(int64_t item) const { return documents_.at(static_cast<size_t>(item)); }
  // Number `index` of the verdict on each item.
  std::vector<double> column(std::span<const ItemScores> scores, size_t index) const {
    std::vector<double> values;
    for (size_t i = 0; i < scores.size(); ++i)
      values.push_back(verdict(static_cast<int64_t>(i), scores[i]).at(index).second);
    return values;
  }

 private:
  std::vector<Document> documents_;
  std::vector<std::vector<Sequence>> sequences_;
  int64_t cut_ = 0;           // contexts
  int64_t double_space_ = 0;  // choices with white space on both sides of their beginning
  std::string delimiter_;
};

double characters(const std::string& text) {
  return static_cast<double>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

class ChoiceTask final : public DocumentTask {
 public:
  using DocumentTask::DocumentTask;

  std::vector<std::pair<std::string, double>> verdict(int64_t item, const ItemScores& scores) const override {
    const Document& d = document(item);
    const auto best = [&](double (*length)(const std::string&)) {
      const auto score = [&](size_t c) { return scores[c].logprob / length(d.choices[c]); };
      size_t chosen = 0;
      for (size_t c = 1; c < scores.size(); ++c)
        if (score(c) > score(chosen)) chosen = c;
      return static_cast<int64_t>(chosen);
    };
    const int64_t plain = best([](const std::string&) { return 1.0; });
    const int64_t by_characters = best(characters);
    const int64_t by_bytes = best([](const std::string& text) { return static_cast<double>(text.size()); });
    return {{"acc", plain == d.gold},
            {"acc_norm", by_characters == d.gold},
            {"acc_bytes", by_bytes == d.gold},
            {"chosen", static_cast<double>(plain)},
            {"gold", static_cast<double>(d.gold)}};
  }
  std::vector<Metric> metrics(std::span<const ItemScores> scores) const override {
    return {mean("acc", column(scores, 0)), mean("acc_norm", column(scores, 1)), mean("acc_bytes", column(scores, 2))};
  }
};

class LastWordTask final : public DocumentTask {
 public:
  using DocumentTask::DocumentTask;

  std::vector<std::pair<std::string, double>> verdict(int64_t, const ItemScores& scores) const override {
    return {{"acc", scores[0].all_greedy()}, {"logprob", scores[0].logprob}};
  }
  std::vector<Metric> metrics(std::span<const ItemScores> scores) const override {
    const Metric nats = scaled("nats", mean("logprob", column(scores, 1)), -1);
    return {mean("acc", column(scores, 0)), exponential("perplexity", nats)};
  }
};

}  // namespace

std::unique_ptr<EvalTask> make_document_task(const TaskTemplate& form, std::vector<Document> documents,
                                             const Shots& shots, int64_t limit, PairEncoder& encoder) {
  if (form.kind == TaskKind::last_word)
    return std::make_unique<LastWordTask>(form, std::move(documents), shots, limit, encoder);
  check(form.kind == TaskKind::choices, "make_document_task", "expected choices or words");
  return std::make_unique<ChoiceTask>(form, std::move(documents), shots, limit, encoder);
}

}  // namespace braid::models::eval
