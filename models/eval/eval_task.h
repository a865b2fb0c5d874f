// A task of evaluation: items, each of them sequences of tokens of which the last ones are scored, and the metrics that
// follow from the scores. score.h computes the scores; metrics need nothing else, so that they can come from a file.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/inference/sampling.h"

namespace braid::models::eval {

// tokens[0, from) are given; log p of each of tokens[from, end) is to be found. 1 <= from < tokens.size(). Of a task
// that generates: a prompt, from = tokens.size(), and the seed of its draws.
struct Sequence {
  std::vector<int32_t> tokens;
  int64_t from = 1;
  uint64_t seed = 0;
};

// How the prompts of a task that generates are continued.
struct Continuation {
  const text::Tokenizer* tokenizer = nullptr;
  std::vector<int32_t> ends;       // tokens that end a text
  std::vector<std::string> stops;  // strings that end a text, of which they are no part
  int64_t max_tokens = 0;
  SamplingOptions sampling;  // but for the seed
};

struct SequenceScore {
  double logprob = 0;           // natural logarithm; of all scored tokens together
  std::vector<uint8_t> greedy;  // of each scored token: 1 where no other token was more likely
  std::string text = {};        // of a task that generates: the continuation, and nothing else

  bool all_greedy() const {
    return std::ranges::all_of(greedy, [](uint8_t g) { return g != 0; });
  }
  friend bool operator==(const SequenceScore&, const SequenceScore&) = default;
};

using ItemScores = std::vector<SequenceScore>;  // one for each sequence of the item

struct Metric {
  std::string name;
  double value = 0;             // NaN: there was nothing to measure
  std::optional<double> error;  // standard error; none where it cannot be estimated
  bool count = false;           // a count, no measurement
};

class EvalTask {
 public:
  EvalTask() = default;
  EvalTask(const EvalTask&) = delete;
  EvalTask& operator=(const EvalTask&) = delete;
  virtual ~EvalTask() = default;

  virtual int64_t size() const = 0;                                 // items
  virtual std::vector<Sequence> sequences(int64_t item) const = 0;  // of an item, at least one
  virtual int64_t longest(int64_t item) const = 0;                  // tokens of its longest sequence
  // Results of one item alone, by name, for the file of results.
  virtual std::vector<std::pair<std::string, double>> verdict(int64_t item, const ItemScores& scores) const = 0;
  // The metrics over all items; `scores` are in their order.
  virtual std::vector<Metric> metrics(std::span<const ItemScores> scores) const = 0;
  // Does the tokenizer decide what an item is, so that models of different tokenizers have different items?
  virtual bool items_follow_tokenizer() const { return false; }
  // How the sequences are continued; null: they are scored.
  virtual const Continuation* continuation() const { return nullptr; }
  // What is compared of each text of a task that generates; none where its filters find nothing.
  virtual std::vector<std::optional<std::string>> answers(const ItemScores&) const { return {}; }
  // Remarks for the user, for example how many contexts were cut.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace braid::models::eval
