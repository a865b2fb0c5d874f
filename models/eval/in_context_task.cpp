#include "braid/models/eval/in_context_task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "braid/models/eval/documents.h"
#include "braid/models/eval/metrics.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {
namespace {

using nlohmann::json;

struct Graded {
  double right = 0, first = 0, answers = 0;
};

class InContextTask final : public EvalTask {
 public:
  InContextTask(const std::vector<text::TaskSample>& samples, const PairEncoder& encoder) {
    const int64_t longest = encoder.longest();
    int64_t answers = 0, lost = 0;
    for (const text::TaskSample& sample : samples) {
      text::TaskTokens row = text::tokenize_task(encoder.tokenizer(), sample);
      const int64_t cut = std::max<int64_t>(0, std::ssize(row.tokens) - longest);
      row.tokens.erase(row.tokens.begin(), row.tokens.begin() + cut);
      answers += std::ssize(row.answers);
      for (text::ByteSpan& a : row.answers) a = {a.begin - cut, a.end - cut};
      lost += std::erase_if(row.answers, [](const text::ByteSpan& a) { return a.begin < 1; });
      if (!row.answers.empty()) rows_.push_back({sample.task, std::move(row)});
    }
    check(!rows_.empty(), ErrorKind::setting, [&] {
      return str("no answer can be graded in sequences of ", longest,
                 " tokens: expected room for the last answers of a sample");
    });
    if (lost > 0)
      notes_.push_back(str(lost, " of ", answers, " answers do not fit the longest sequence and do not count"));
  }

  int64_t size() const override { return std::ssize(rows_); }
  std::vector<Sequence> sequences(int64_t item) const override {
    const text::TaskTokens& tokens = row(item).tokens;
    return {{tokens.tokens, tokens.answers.front().begin}};
  }
  int64_t longest(int64_t item) const override { return std::ssize(row(item).tokens.tokens); }
  std::vector<std::pair<std::string, double>> verdict(int64_t item, const ItemScores& scores) const override {
    const Graded graded = grade(item, scores);
    return {{"answers", graded.answers}, {"right", graded.right}, {"first_token_right", graded.first}};
  }

  std::vector<Metric> metrics(std::span<const ItemScores> scores) const override {
    struct Columns {
      std::vector<double> right, first, answers;
    };
    std::map<std::string, Columns> tasks;
    Columns all;
    for (size_t i = 0; i < scores.size(); ++i) {
      const Graded g = grade(static_cast<int64_t>(i), scores[i]);
      for (Columns* c : {&tasks[row(static_cast<int64_t>(i)).task], &all}) {
        c->right.push_back(g.right), c->first.push_back(g.first), c->answers.push_back(g.answers);
      }
    }
    const auto over_tasks = [&](const std::string& name, std::vector<double> Columns::*right) {
      std::vector<double> values, variances;
      for (const auto& [task, columns] : tasks) {
        const Metric of_task = ratio(task, columns.*right, columns.answers);
        values.push_back(of_task.value);
        if (of_task.error) variances.push_back(*of_task.error * *of_task.error);
      }
      Metric metric = mean(name, values);
      metric.error = {};
      if (variances.size() == values.size())
        metric.error = std::sqrt(sum(variances)) / static_cast<double>(values.size());
      return metric;
    };
    return {over_tasks("accuracy", &Columns::right),
            over_tasks("first_token_accuracy", &Columns::first),
            ratio("answer_accuracy", all.right, all.answers),
            {.name = "tasks", .value = static_cast<double>(tasks.size()), .error = {}, .count = true},
            {.name = "answers", .value = sum(all.answers), .error = {}, .count = true}};
  }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  struct Row {
    std::string task;
    text::TaskTokens tokens;
  };
  const Row& row(int64_t item) const { return rows_.at(static_cast<size_t>(item)); }
  Graded grade(int64_t item, const ItemScores& scores) const {
    const Row& r = row(item);
    const int64_t from = r.tokens.answers.front().begin;
    std::vector<uint8_t> right(static_cast<size_t>(from), 0);
    right.insert(right.end(), scores[0].greedy.begin(), scores[0].greedy.end());
    text::TaskGrader grader;
    grader.add(r.task, r.tokens.answers, right);
    const text::TaskScore& score = grader.tasks().at(r.task);
    return {static_cast<double>(score.right), static_cast<double>(score.first_right),
            static_cast<double>(score.answers)};
  }

  std::vector<Row> rows_;
  std::vector<std::string> notes_;
};

// The text without "[ " and " ]", and where the answers between them are.
text::TaskSample without_marks(const std::string& task, const std::string& text, const Location& location) {
  text::TaskSample sample{task, "", {}};
  size_t begin = 0;
  for (size_t open; (open = text.find("[ ", begin)) != std::string::npos;) {
    const size_t close = text.find(" ]", open + 2);
    const size_t line_end = std::min(text.find('\n', open), text.size());
    if (close == std::string::npos || close <= open + 2 || close > line_end)
      bad_line(location, "an answer as '[ answer ]'", "'" + detail::preview(text.substr(open, 40)) + "'");
    sample.text += text.substr(begin, open - begin);
    const auto first = std::ssize(sample.text);
    sample.text += text.substr(open + 2, close - open - 2);
    sample.answers.push_back({first, std::ssize(sample.text)});
    begin = close + 2;
  }
  sample.text += text.substr(begin);
  if (sample.answers.empty()) bad_line(location, "answers as '[ answer ]' in the field 'texts'", "none");
  return sample;
}

text::TaskSample sample_of(const json& object, const Location& location) {
  const auto text_in = [&](const char* field) {
    if (!object.contains(field) || !object[field].is_string()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : object.items()) names.push_back(detail::preview(name));
      bad_line(location, str("a string in the field '", field, "'"),
               "the fields " + detail::join(names, ", ") + detail::did_you_mean(field, names));
    }
    return object[field].get<std::string>();
  };
  if (!object.contains("answers")) return without_marks(text_in("task_id"), text_in("texts"), location);
  text::TaskSample sample{text_in("task"), text_in("text"), {}};
  const char* expected = "answers as [begin, end], one behind another within the text";
  if (!object["answers"].is_array() || object["answers"].empty()) bad_line(location, expected, "none");
  int64_t last = 0;
  for (const json& a : object["answers"]) {
    const bool pair = a.is_array() && a.size() == 2 && a[0].is_number_unsigned() && a[1].is_number_unsigned();
    if (!pair || a[0] >= a[1] || a[0] < last || a[1] > sample.text.size())
      bad_line(location, expected, detail::preview(a.dump(-1, ' ', true)));
    sample.answers.push_back({a[0].get<int64_t>(), last = a[1].get<int64_t>()});
  }
  return sample;
}

}  // namespace

std::unique_ptr<EvalTask> make_in_context_task(const std::vector<text::TaskSample>& samples,
                                               const PairEncoder& encoder) {
  return std::make_unique<InContextTask>(samples, encoder);
}

std::vector<text::TaskSample> read_in_context_samples(const std::string& file) {
  std::vector<text::TaskSample> samples;
  for_each_line(file,
                [&](const json& object, const Location& location) { samples.push_back(sample_of(object, location)); });
  return samples;
}

}  // namespace braid::models::eval
