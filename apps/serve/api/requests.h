// The bodies of requests: JSON text -> checked structs. Pure functions; every error is an ApiError that names the field
// and its limits, thrown before any work of the model. Names that are not known are ignored, as clients send many.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/serve/api/answer_format.h"
#include "braid/models/inference/generate.h"

namespace braid::apps::serve {

struct RequestLimits {
  int64_t ids = 0;          // token ids that a prompt may have are below it
  int64_t context = 0;      // longest text: of the model, and of the cache
  int64_t sequences = 128;  // most texts of one request, prompts x n, or x best_of
};
inline constexpr int64_t max_stops = 64, max_stop_bytes = 1024, max_top = 20;

// How text is made; the fields that completions and chat share.
struct GenerationFields {
  std::optional<int64_t> max_tokens;  // none: the route's default; more than the context: as many as fit
  int64_t n = 1;                      // texts for each prompt
  int64_t best_of = 1;                // made for each, of which the n likeliest are the answer
  models::SamplingOptions sampling = {};
  bool seeded = false;  // sampling.seed was given
  std::vector<std::string> stops;
  std::optional<int64_t> top;  // scores, with so many likeliest tokens each
  bool stream = false, include_usage = false;
  bool ignore_eos = false;
  bool return_token_ids = false;  // beside the texts
  GrammarPointer format;          // of every text
};

struct CompletionRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;
  GenerationFields fields;
  std::vector<Prompt> prompts;  // an empty one: a new document
  bool echo = false;
  bool add_special_tokens = true, parse_special = true;  // of prompts that are text
};
// POST /v1/completions
CompletionRequest parse_completion_request(std::string_view body, const RequestLimits& limits);

struct ChatRequest {
  GenerationFields fields;
  std::vector<models::text::ChatTurn> messages;
  ToolUse tools;
  std::vector<int32_t> answer;  // tokens that the answer begins with
};
// POST /v1/chat/completions
ChatRequest parse_chat_request(std::string_view body, const RequestLimits& limits);

struct TokenizeRequest {
  std::string text;
  bool add_special_tokens = false, parse_special = true;
};
// POST /tokenize: {"prompt": text} or {"content": text}
TokenizeRequest parse_tokenize_request(std::string_view body);
// POST /detokenize: {"tokens": [id, ...]}
std::vector<int32_t> parse_detokenize_request(std::string_view body, const RequestLimits& limits);

// The fields of `object` that completions and chat share, but for logprobs. sampling.vocabulary is `ids`. min_tokens:
// of the new tokens that may be asked for.
GenerationFields parse_generation_fields(const class Fields& fields, const RequestLimits& limits, int64_t min_tokens);

}  // namespace braid::apps::serve
