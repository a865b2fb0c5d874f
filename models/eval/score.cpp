#include "braid/models/eval/score.h"

#include <deque>
#include <exception>
#include <unordered_map>

#include "braid/models/eval/metrics.h"
#include "braid/models/inference/text_stream.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {
namespace {

// An item whose sequences are with the engine.
struct Pending {
  int64_t item = 0;
  ItemScores scores;
  size_t missing = 0;
  std::exception_ptr error;
};

SequenceScore summary(const std::vector<TokenScore>& tokens) {
  SequenceScore score;
  std::vector<double> logprobs;
  for (const TokenScore& t : tokens) {
    logprobs.push_back(t.logprob);
    score.greedy.push_back(!t.top.empty() && t.logprob >= t.top.front().second);
  }
  score.logprob = sum(logprobs);
  return score;
}

// The engine with the requests of this call in it. At the end nothing of them is left behind.
class Requests {
 public:
  explicit Requests(GenerationEngine& engine) : engine_(engine) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() {
    try {
      for (const auto& [id, item] : items_) engine_.cancel(id);
      while (!items_.empty() && engine_.step()) continue;
    } catch (...) {  // the engine itself is broken, and its user gets that exception from step()
    }
  }

  int64_t size() const { return std::ssize(items_); }

  void submit(const std::shared_ptr<Pending>& item, size_t index, Sequence sequence, const Continuation* continuation) {
    if (continuation) return submit_prompt(item, index, std::move(sequence), *continuation);
    GenerationRequest request;
    const int64_t expected = std::ssize(sequence.tokens) - sequence.from;
    request.prompt = std::move(sequence.tokens);
    request.max_tokens = 0;
    request.score_from = sequence.from;
    request.top = 1;
    request.on_update = [this, item, index, expected](const Update& update) {
      if (!update.prompt_scores.empty()) item->scores[index] = summary(update.prompt_scores);
      if (!update.finished) return true;
      end_sequence(item, update, std::ssize(item->scores[index].greedy) == expected);
      return true;
    };
    send(*item, std::move(request));
  }

  void step() {
    check(engine_.step(), "score_items",
          [&] { return str("the engine has nothing to do while ", items_.size(), " sequences wait"); });
  }
  // The next complete item, or null.
  std::shared_ptr<Pending> take_complete() {
    if (complete_.empty()) return nullptr;
    auto item = complete_.front();
    complete_.pop_front();
    return item;
  }

 private:
  void submit_prompt(const std::shared_ptr<Pending>& item, size_t index, Sequence sequence, const Continuation& how) {
    const auto stream = std::make_shared<TextStream>(*how.tokenizer, how.stops);
    stream->begin(sequence.tokens);
    GenerationRequest request{
        .prompt = std::move(sequence.tokens), .max_tokens = how.max_tokens, .sampling = how.sampling, .ends = how.ends};
    request.sampling.seed = sequence.seed;
    request.on_update = [this, item, index, stream](const Update& update) {
      std::string& text = item->scores[index].text;
      for (const int32_t token : update.tokens) text += stream->push(token);
      if (!update.finished) return !stream->stopped();
      text += stream->finish();
      end_sequence(item, update, update.reason != StopReason::cancelled);
      return true;
    };
    send(*item, std::move(request));
  }
  void send(const Pending& item, GenerationRequest request) {
    const std::optional<uint64_t> id = engine_.submit(std::move(request));
    check(id.has_value(), "score_items", "needs an engine without a limited queue");
    items_.emplace(*id, item.item);
  }
  void end_sequence(const std::shared_ptr<Pending>& item, const Update& update, bool complete) {
    items_.erase(update.id);
    if (update.error && !item->error) item->error = update.error;
    if (update.error || (complete && --item->missing == 0)) complete_.push_back(item);
  }

  GenerationEngine& engine_;
  std::unordered_map<uint64_t, int64_t> items_;  // by request
  std::deque<std::shared_ptr<Pending>> complete_;
};

void report(const Pending& item, const std::function<void(int64_t, const ItemScores&)>& done) {
  if (!item.error) return done(item.item, item.scores);
  try {
    std::rethrow_exception(item.error);
  } catch (const Error& error) {
    fail(error.kind(), str("cannot score item ", item.item, ": ", error.what()));
  }
}

}  // namespace

std::unique_ptr<GenerationEngine> make_scoring_engine(const LanguageModel& model, int64_t sequences, int64_t longest) {
  auto engine = std::make_unique<GenerationEngine>(
      model, EngineOptions{.sequences = sequences, .positions = sequences * longest});
  if (engine->invariant()) return engine;
  return std::make_unique<GenerationEngine>(
      model, EngineOptions{.sequences = 1, .positions = longest, .share_prefixes = false});
}

bool score_items(GenerationEngine& engine, const EvalTask& task, std::span<const int64_t> items, int64_t ahead,
                 const std::function<void(int64_t item, const ItemScores& scores)>& done,
                 const std::function<bool()>& stop) {
  // The sequences of an item stand together, so that they share what they have in common.
  std::vector<std::pair<int64_t, int64_t>> order;
  for (const int64_t item : items) order.emplace_back(-task.longest(item), item);
  std::ranges::sort(order);
  Requests requests(engine);
  for (size_t next = 0; next < order.size() || requests.size() > 0;) {
    if (stop && stop()) return false;
    while (next < order.size() && requests.size() < ahead) {
      std::vector<Sequence> sequences = task.sequences(order[next].second);
      const auto item = std::make_shared<Pending>();
      item->item = order[next++].second;
      item->scores.resize(item->missing = sequences.size());
      for (size_t i = 0; i < sequences.size(); ++i)
        requests.submit(item, i, std::move(sequences[i]), task.continuation());
    }
    requests.step();
    while (const auto item = requests.take_complete()) report(*item, done);
  }
  return true;
}

}  // namespace braid::models::eval
