// One text of a request while it is made: tokens and scores of the engine in, pieces of text out.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/serve/api/call_reader.h"
#include "braid/models/inference/engine.h"
#include "braid/models/inference/text_stream.h"

namespace braid::apps::serve {

struct ScoredToken {
  int32_t token = 0;
  std::optional<double> logprob;                // none: the first token of a text has no condition
  std::vector<std::pair<int32_t, double>> top;  // the likeliest, best first
  int64_t offset = 0;                           // of the token's first character in the text
};

// The new part of a text; pieces joined are the whole.
struct Piece {
  std::string text;
  std::vector<ScoredToken> scores;
  std::vector<int32_t> tokens, prompt;  // where ids are asked for: the new ones; with the first piece the prompt's
  std::vector<CallPart> calls;          // of tools, behind the text
  const char* finish_reason = nullptr;  // "stop", "length", "tool_calls"; nullptr: more follows
  bool empty() const { return text.empty() && scores.empty() && tokens.empty() && calls.empty() && !finish_reason; }
  void append(Piece more);
};

// The text that the bytes of a token show; "" for an id that the tokenizer does not have.
std::string token_text(const models::text::Tokenizer& tokenizer, int32_t token);

class Choice {
 public:
  struct Settings {
    std::vector<std::string> stops;
    bool scores = false;                        // of new tokens, and with echo those of the prompt
    bool echo = false;                          // the text begins with the prompt
    bool ids = false;                           // pieces have their tokens
    std::optional<CallReader::Settings> calls;  // of tools, which the text may have; its stops replace those above
  };
  // The tokenizer and the prompt must outlive it.
  Choice(const models::text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt, const Settings& settings);

  // Error of the update where the engine could not continue. Updates behind finished() are ignored.
  Piece update(const models::Update& update);
  bool finished() const { return finished_; }
  int64_t new_tokens() const { return new_tokens_; }
  int64_t shared_tokens() const { return shared_tokens_; }

 private:
  void begin(const models::Update& update, Piece& piece);
  void add_text(const std::string& text, Piece& piece);
  std::string text_of(int32_t token);
  bool stopped() const { return calls_ ? calls_->stopped() : text_.stopped(); }
  std::string add_token(int32_t token, const models::TokenScore* score, models::text::StreamDecoder& decoder,
                        Piece& piece);
  void add_score(int32_t token, const models::TokenScore* score, int64_t behind, Piece& piece);

  const models::text::Tokenizer& tokenizer_;
  const std::vector<int32_t>& prompt_;
  Settings settings_;
  models::TextStream text_;
  std::optional<CallReader> calls_;
  models::text::StreamDecoder places_;  // for the offsets: TextStream holds back what may become a stop string
  bool begun_ = false, finished_ = false;
  int64_t characters_ = 0, new_tokens_ = 0, shared_tokens_ = 0;
};

}  // namespace braid::apps::serve
