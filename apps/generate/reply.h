// The parts of `braid generate` that a single text and a conversation share.
#pragma once
#include <string>
#include <vector>

#include "apps/cli/prompt.h"
#include "braid/distributed/comm/communicator.h"
#include "braid/models/inference/generate.h"

namespace braid::apps {

// How text is continued; the references must outlive it.
struct ReplySettings {
  const models::LanguageModel& model;
  const models::text::Tokenizer& tokenizer;
  models::SamplingOptions sampling;
  int64_t max_tokens = 0;
  std::vector<int32_t> ends;       // the tokens that end a text
  std::vector<std::string> stops;  // texts that end a reply
  bool parse_specials = false;
  PromptTemplate prompt_template;
};

// Tokens and wall time of several replies.
struct ReplySpeed {
  int64_t prompt_tokens = 0, steps = 0;
  double prompt_seconds = 0, step_seconds = 0;
  void add(const models::Generated& reply);
};

// Continues the text and prints `before` and what is new, with a line end.
models::Generated print_reply(const ReplySettings& settings, models::Conversation& text,
                              const std::string& before = "");

// On stderr, where the model's longest sequence cut the reply.
void note_full(const models::LanguageModel& model, const models::Generated& reply);

// One prompt a line of standard input (read by rank 0), one reply for each; the text and its cache stay. Where the
// model's longest sequence is reached, the oldest tokens are dropped. `first`: tokens that the text begins with.
ReplySpeed converse(const ReplySettings& settings, const std::vector<int32_t>& first, const dist::Communicator& world,
                    double timeout);

}  // namespace braid::apps
