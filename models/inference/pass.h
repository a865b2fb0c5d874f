// One pass over the weights for pieces of several texts, and what follows from its logits.
#pragma once
#include <chrono>
#include <optional>

#include "braid/models/inference/constraint/constraint.h"
#include "braid/models/inference/request.h"
#include "braid/models/language_model.h"

namespace braid::models {

// A request that waits or runs.
struct RequestState {
  GenerationRequest request;
  Update totals;                                 // id, and what the last update tells
  std::vector<int32_t> text;                     // the prompt and the new tokens
  std::unique_ptr<ConstrainedText> constrained;  // the new tokens, where the request has a constraint
  int sequence = -1;                             // of the pool, where it runs
  int64_t max_positions = 0;                     // positions that it needs at most
  // Results of the newest pass.
  std::optional<int32_t> drawn;
  std::exception_ptr error;
  // Results until they are told.
  std::vector<TokenScore> prompt_scores, scores;  // scores: of what is drawn
  int64_t scored = 0;  // the next prompt token that needs a score; those before it have theirs
  int64_t draws = 0;
  std::chrono::steady_clock::time_point submitted, admitted, first_draw;

  int64_t prompt_length() const { return std::ssize(request.prompt); }
  int64_t new_tokens() const { return std::ssize(text) - prompt_length(); }
};

struct Piece {
  RequestState* state;
  int64_t begin, end;  // tokens of its text, all of the prompt or all of them new
};

// Computes the pieces, scores prompt tokens and draws the token that follows a text which is complete. Fills draw,
// error and prompt_scores of the states. Only rows that are needed get logits, at most 64 at a time. An exception of
// the pass itself leaves through the call; one that concerns a single row becomes the error of its state.
void compute_pass(const LanguageModel& model, SequencePool& pool, std::span<const Piece> pieces);

}  // namespace braid::models
