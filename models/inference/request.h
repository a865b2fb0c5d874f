// A request to continue or score one text, and the updates that its caller gets.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "braid/models/inference/sampling.h"

namespace braid::models {

class LanguageModel;
struct Constraint;

enum class StopReason : uint8_t {
  length,        // max_tokens were generated
  end_of_text,   // an end token was drawn, or nothing can follow by the constraint
  context_full,  // the cache has no position left for the last token
  caller,        // on_update, or `accept` of generate(), returned false
  cancelled,
  failed
};

struct TokenScore {
  int32_t token = 0;
  double logprob = 0;  // natural logarithm, softmax over all of the vocabulary, before temperature and penalties
  std::vector<std::pair<int32_t, double>> top;  // the most likely tokens, best first; equal ones in order of their ids
};

struct Update;
struct GenerationRequest {
  std::vector<int32_t> prompt;
  int64_t max_tokens = 16;  // 0: only the prompt is computed
  SamplingOptions sampling;
  std::vector<int32_t> ends;  // tokens that end the text
  // What the new text may be, by its bytes (constraint/constraint.h); null: anything. Tokens that it excludes have the
  // logit -inf before the filters and penalties of `sampling`; scores do not know of it.
  std::shared_ptr<const Constraint> constraint = nullptr;
  bool logprobs = false;    // scores of the new tokens
  int64_t top = 0;          // number of entries of TokenScore::top
  int64_t score_from = -1;  // >= 1: scores of prompt tokens [score_from, end) too; below: none
  // Called by step() in its thread after a pass with news for this request. Returns false to end the request
  // (StopReason::caller). An exception that it throws ends this request alone (StopReason::failed). Either way it is
  // called once more, with Update::finished; what it returns or throws then has no effect. It may call submit(),
  // cancel() and load().
  std::function<bool(const Update&)> on_update;
};

// Every request gets exactly one update with `finished`, its last one.
struct Update {
  uint64_t id = 0;
  std::vector<int32_t> tokens;            // new; an end token is not among them
  std::vector<TokenScore> scores;         // of these, where logprobs is set; of an end token too (one more than tokens)
  std::vector<TokenScore> prompt_scores;  // all at once, with the first update after the prompt
  bool finished = false;
  StopReason reason = StopReason::length;  // where finished
  std::exception_ptr error;                // where reason is failed
  // where finished:
  int64_t prompt_tokens = 0, shared_tokens = 0;  // shared: of the prompt, not computed but taken from a cache
  int64_t steps = 0;                             // draws after the first one
  // Wall time until the request was admitted, from there to the first draw (or the end of the prompt), and from there
  // to the last draw.
  double queue_seconds = 0, prompt_seconds = 0, step_seconds = 0;
};

// Error(setting) when there is no token or more than the model's longest sequence; Error(input) for an id that the
// model does not have.
void check_prompt(const LanguageModel& model, std::span<const int32_t> prompt);

}  // namespace braid::models
