// Generated texts that belong to a language: the tokens that may follow, from the bytes of each.
#pragma once
#include <unordered_map>

#include "braid/models/inference/constraint/automaton.h"
#include "braid/models/inference/constraint/vocabulary.h"

namespace braid::models {

// What a text may be. Shared by the texts of a request; immutable.
struct Constraint {
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const Vocabulary> vocabulary;
};

// One text while it is made.
class ConstrainedText {
 public:
  // ends: the tokens that end the text.
  ConstrainedText(std::shared_ptr<const Constraint> constraint, std::vector<int32_t> ends);

  // Excludes, by -inf, the tokens after which no text of the language is left. Where the text is complete, tokens that
  // end it may follow. Error(input) where no token is left, or where too many steps would be needed.
  void mask(std::span<float> logits);
  void add(int32_t token);  // one that mask() allows
  // The text is complete, and nothing but its end may follow.
  bool ended() const { return automaton_ && automaton_->ends(state_); }

 private:
  using Mask = std::vector<uint64_t>;  // a bit for each token
  static constexpr size_t max_mask_bytes = 4 << 20;
  static constexpr uint64_t max_work = 2'000'000;  // of one mask

  void begin();
  Mask compute();
  void keep(std::span<Automaton::State> states);

  std::shared_ptr<const Constraint> constraint_;
  std::vector<int32_t> ends_;
  std::unique_ptr<Automaton> automaton_;  // made when the text begins: many requests may wait
  Automaton::State state_ = Automaton::dead;
  std::unordered_map<Automaton::State, Mask> masks_;
};

}  // namespace braid::models
