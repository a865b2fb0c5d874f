#include "apps/eval/result_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {
namespace {

using models::eval::ItemScores;
using models::eval::SequenceScore;
using nlohmann::json;
using nlohmann::ordered_json;

// The scores of the sequences on a line. JSON has no infinity: null is a log p of -inf.
std::optional<ItemScores> parse_scores(const json& object, const std::vector<models::eval::Sequence>& sequences) {
  const auto list = [&](const char* name) {
    return object.contains(name) && object[name].is_array() && object[name].size() == sequences.size();
  };
  if (!list("logprobs") || !list("greedy")) return {};
  ItemScores scores;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const json &logprob = object["logprobs"][i], &greedy = object["greedy"][i];
    if (!(logprob.is_number() || logprob.is_null()) || !greedy.is_string()) return {};
    SequenceScore score{.logprob = logprob.is_null() ? -INFINITY : logprob.get<double>(), .greedy = {}};
    for (const char c : greedy.get_ref<const std::string&>()) {
      if (c != '0' && c != '1') return {};
      score.greedy.push_back(c == '1');
    }
    if (std::ssize(score.greedy) != std::ssize(sequences[i].tokens) - sequences[i].from) return {};
    scores.push_back(std::move(score));
  }
  return scores;
}

// The texts of a task that generates.
std::optional<ItemScores> parse_texts(const json& object, size_t count) {
  if (!object.contains("texts") || !object["texts"].is_array() || object["texts"].size() != count) return {};
  ItemScores scores;
  for (const json& text : object["texts"]) {
    if (!text.is_string()) return {};
    scores.push_back({.logprob = 0, .greedy = {}, .text = text.get<std::string>()});
  }
  return scores;
}

}  // namespace

ResultFile::ResultFile(const std::string& path, const Fingerprint& fingerprint, const models::eval::EvalTask& task)
    : path_(path), task_(task) {
  if (path_.empty()) return;
  journal_.emplace(path_, "braid_eval", fingerprint, "give another folder with --out, or remove " + path_,
                   [&](const json& object) { return take(object); });
  resumed_ = std::ssize(scores_);
}

std::string ResultFile::take(const json& object) {
  const bool named = object.is_object() && object.contains("item") && object["item"].is_number_unsigned();
  const int64_t item = named ? object["item"].get<int64_t>() : -1;
  if (item < 0 || item >= task_.size() || scores_.contains(item))
    return str("an item from 0 to ", task_.size() - 1, ", each once");
  const std::vector<models::eval::Sequence> sequences = task_.sequences(item);
  const std::optional<ItemScores> scores =
      task_.continuation() ? parse_texts(object, sequences.size()) : parse_scores(object, sequences);
  if (!scores) return str("the scores of item ", item);
  keep(item, *scores);
  return "";
}

void ResultFile::keep(int64_t item, const ItemScores& scores) {
  ordered_ = ordered_ && (scores_.empty() || item > scores_.rbegin()->first);
  scores_[item] = scores;
}

std::vector<int64_t> ResultFile::missing() const {
  std::vector<int64_t> items;
  for (int64_t i = 0; i < task_.size(); ++i)
    if (!scores_.contains(i)) items.push_back(i);
  return items;
}

std::string ResultFile::line(int64_t item, const ItemScores& scores) const {
  ordered_json object = {{"item", item}};
  for (const auto& [name, value] : task_.verdict(item, scores)) object[name] = value;
  if (task_.continuation()) {
    for (const SequenceScore& score : scores) object["texts"].push_back(score.text);
    for (const auto& answer : task_.answers(scores))
      object["answers"].push_back(answer ? ordered_json(*answer) : ordered_json());
    return object.dump();
  }
  ordered_json logprobs = ordered_json::array(), greedy = ordered_json::array();
  for (const SequenceScore& score : scores) {
    logprobs.push_back(score.logprob);
    std::string digits;
    for (const uint8_t g : score.greedy) digits += g ? '1' : '0';
    greedy.push_back(digits);
  }
  object["logprobs"] = logprobs;
  object["greedy"] = greedy;
  return object.dump();
}

void ResultFile::add(int64_t item, const ItemScores& scores) {
  if (journal_) journal_->add(line(item, scores));
  keep(item, scores);
}

std::vector<ItemScores> ResultFile::finish() {
  std::vector<ItemScores> all;
  for (const auto& [item, scores] : scores_) all.push_back(scores);
  if (journal_) journal_->sync();
  if (journal_ && !ordered_) {
    std::string text = journal_->head();
    for (const auto& [item, scores] : scores_) text += line(item, scores) + "\n";
    journal_.reset();
    io::write_file(path_, text);
  }
  return all;
}

}  // namespace braid::apps
