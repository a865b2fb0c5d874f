// Answers to clients: pieces of text as JSON, whole or as server-sent events, in the shapes of OpenAI's two routes.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "apps/serve/api/choice.h"

namespace braid::apps::serve {

struct Usage {
  int64_t prompt_tokens = 0, completion_tokens = 0;
  int64_t shared_tokens = 0;  // of the prompts, not computed but found in a cache
};

// Writes the responses to one request.
class ResponseWriter {
 public:
  struct Settings {
    bool chat = false;
    bool scores = false;
    bool ids = false;     // token ids beside texts, of the prompt too
    bool usage = false;   // the stream ends with an event of the usage; it is null in those before
    std::string id;       // of the answer
    int64_t created = 0;  // seconds since 1970
    std::string model;
  };
  ResponseWriter(const models::text::Tokenizer& tokenizer, Settings settings)
      : tokenizer_(tokenizer), settings_(std::move(settings)) {}

  // The answer that does not stream; choices in their order.
  std::string whole(const std::vector<Piece>& choices, const Usage& usage) const;
  // Events of a stream: the beginning of every choice (of chats alone), a piece, the end of all.
  std::string begin_events(int64_t choices) const;
  std::string event(int64_t index, const Piece& piece) const;
  std::string end_events(const Usage& usage) const;
  // The stream ends with an error.
  static std::string error_event(const std::string& error_body);

 private:
  nlohmann::ordered_json frame(bool stream) const;
  nlohmann::ordered_json choice(int64_t index, const Piece& piece, bool stream) const;
  nlohmann::ordered_json completion_scores(const std::vector<ScoredToken>& scores) const;
  nlohmann::ordered_json chat_scores(const std::vector<ScoredToken>& scores) const;

  const models::text::Tokenizer& tokenizer_;
  Settings settings_;
};

}  // namespace braid::apps::serve
