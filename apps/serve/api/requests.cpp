#include "apps/serve/api/requests.h"

#include <cmath>
#include <limits>

#include "apps/serve/api/api_error.h"
#include "apps/serve/api/request_fields.h"
#include "braid/models/data/prepare/chat.h"
#include "braid/tensor/base/strings.h"

namespace braid::apps::serve {
namespace {

using nlohmann::json;

std::vector<std::string> parse_stops(const Fields& fields) {
  std::vector<std::string> stops;
  const json* value = fields.find("stop");
  if (!value) return stops;
  const json list = value->is_array() ? *value : json::array({*value});
  if (std::ssize(list) > max_stops)
    throw ApiError(400, str("bad value of 'stop': expected at most ", max_stops, " strings, found ", list.size()),
                   "stop", "invalid_value");
  for (const json& stop : list) {
    const bool fits = stop.is_string() && !stop.get_ref<const std::string&>().empty() &&
                      std::ssize(stop.get_ref<const std::string&>()) <= max_stop_bytes;
    if (!fits) fields.bad("stop", str("strings of 1 to ", max_stop_bytes, " bytes, one or a list"), stop);
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

// Fields that would change the result and are not supported: an error rather than another result.
void reject(const Fields& fields, const char* name, const std::string& instead) {
  const json* value = fields.find(name);
  if (!value || (value->is_structured() && value->empty())) return;
  throw ApiError(400, str("'", name, "' is not supported", instead), name, "unsupported_parameter");
}

void check_count(int64_t prompts, int64_t n, const RequestLimits& limits) {
  if (prompts <= limits.sequences / n) return;
  throw ApiError(400,
                 str("too many texts in one request: at most ", limits.sequences, ", found ", prompts, " prompts with ",
                     n, " texts of each ('n' or 'best_of')"),
                 prompts > limits.sequences ? "prompt" : "n", "invalid_value");
}

CompletionRequest::Prompt parse_prompt(const Fields& fields, const std::string& name, const json& value,
                                       const RequestLimits& limits) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) fields.bad(name, "a string or a list of token ids", value);
  return token_ids(fields, name, value, limits.ids);
}

std::vector<CompletionRequest::Prompt> parse_prompts(const Fields& fields, const RequestLimits& limits) {
  const json* value = fields.find("prompt");
  if (!value) return {""};
  const bool several = value->is_array() && !value->empty() && !(*value)[0].is_number();
  if (!several) return {parse_prompt(fields, "prompt", *value, limits)};
  std::vector<CompletionRequest::Prompt> prompts;
  for (const json& one : *value) {
    if (std::ssize(prompts) == limits.sequences) check_count(std::ssize(*value), 1, limits);
    prompts.push_back(parse_prompt(fields, str("prompt[", prompts.size(), "]"), one, limits));
  }
  return prompts;
}

// {"50256": -100}
std::vector<std::pair<int32_t, float>> parse_logit_bias(const Fields& fields, const RequestLimits& limits) {
  std::vector<std::pair<int32_t, float>> biases;
  const json* value = fields.find("logit_bias");
  if (!value || (value->is_array() && value->empty())) return biases;
  const std::string expected =
      str("an object with token ids from 0 to ", limits.ids - 1, " as names, numbers from -100 ", "to 100 as values");
  if (!value->is_object()) fields.bad("logit_bias", expected, *value);
  for (const auto& [name, bias] : value->items()) {
    const auto id = braid::detail::parse_int(name);
    const double x = bias.is_number() ? bias.get<double>() : NAN;
    if (!id || *id < 0 || *id >= limits.ids || !(std::fabs(x) <= 100)) fields.bad("logit_bias", expected, bias);
    biases.emplace_back(static_cast<int32_t>(*id), static_cast<float>(x));
  }
  return biases;
}

// As many new tokens, -1: as many as fit, as other servers have it.
std::optional<int64_t> parse_max_tokens(const Fields& fields, const char* name, int64_t min,
                                        const RequestLimits& limits) {
  const json* value = fields.find(name);
  if (!value) return std::nullopt;
  if (*value == -1) return limits.context;
  if (!value->is_number_integer() || *value < min || value->get<uint64_t>() > INT64_MAX)
    fields.bad(name, str("an integer of at least ", min, ", or -1: as many as fit"), *value);
  return value->get<int64_t>();
}

}  // namespace

GenerationFields parse_generation_fields(const Fields& fields, const RequestLimits& limits, int64_t min_tokens) {
  constexpr int64_t max = std::numeric_limits<int64_t>::max();
  GenerationFields result;
  fields.text("model");  // one model is served, whatever its name
  fields.text("user");
  result.n = fields.integer("n", 1, limits.sequences).value_or(1);
  result.best_of = fields.integer("best_of", 0, limits.sequences).value_or(0);
  if (result.best_of == 0) result.best_of = result.n;
  if (result.best_of < result.n)
    throw ApiError(
        400, str("bad value of 'best_of': expected at least the value of 'n', ", result.n, ", found ", result.best_of),
        "best_of", "invalid_value");
  result.max_tokens = parse_max_tokens(fields, "max_tokens", min_tokens, limits);
  result.sampling.temperature = fields.number("temperature", 0, 100).value_or(1);
  result.sampling.top_p = fields.number("top_p", 0, 1).value_or(1);
  result.sampling.min_p = fields.number("min_p", 0, 1).value_or(0);
  if (const json* k = fields.find("top_k"); k && *k != -1)  // -1: all, as other servers have it
    result.sampling.top_k = fields.integer("top_k", 0, max).value_or(0);
  result.sampling.repetition_penalty = fields.positive("repetition_penalty", 100).value_or(1);
  result.sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  result.sampling.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  result.sampling.logit_bias = parse_logit_bias(fields, limits);
  result.sampling.vocabulary = limits.ids;
  if (const auto seed = fields.integer("seed", std::numeric_limits<int64_t>::min(), max)) {
    result.seeded = true;
    result.sampling.seed = static_cast<uint64_t>(*seed);
  }
  result.stops = parse_stops(fields);
  result.stream = fields.boolean("stream").value_or(false);
  if (result.stream && result.best_of > result.n)
    throw ApiError(400, "'best_of' above 'n' cannot stream: the best text is known when all have ended", "best_of",
                   "invalid_value");
  if (const json* options = fields.find("stream_options")) {
    if (!options->is_object()) fields.bad("stream_options", "an object", *options);
    result.include_usage = Fields(*options, "stream_options.").boolean("include_usage").value_or(false);
  }
  result.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  result.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  if (fields.text("suffix").value_or("") != "") reject(fields, "suffix", "");
  reject(fields, "functions", ": use 'tools' of /v1/chat/completions");
  return result;
}

CompletionRequest parse_completion_request(std::string_view body, const RequestLimits& limits) {
  const json object = parse_body(body);
  const Fields fields(object);
  CompletionRequest request;
  request.fields = parse_generation_fields(fields, limits, 0);
  request.fields.top = fields.integer("logprobs", 0, max_top);
  reject(fields, "tools", " here: it is a field of /v1/chat/completions");
  if (fields.has("response_format")) request.fields.format = parse_response_format(fields, parse_ordered_body(body));
  request.echo = fields.boolean("echo").value_or(false);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  request.parse_special = fields.boolean("parse_special").value_or(true);
  request.prompts = parse_prompts(fields, limits);
  check_count(std::ssize(request.prompts), request.fields.best_of, limits);
  return request;
}

ChatRequest parse_chat_request(std::string_view body, const RequestLimits& limits) {
  const json object = parse_body(body);
  const Fields fields(object);
  ChatRequest request;
  request.fields = parse_generation_fields(fields, limits, 1);
  if (const auto max = parse_max_tokens(fields, "max_completion_tokens", 1, limits)) request.fields.max_tokens = max;
  const bool scores = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, max_top);
  if (top.value_or(0) > 0 && !scores)
    throw ApiError(400, "'top_logprobs' needs 'logprobs' = true beside it", "top_logprobs", "invalid_value");
  if (scores) request.fields.top = top.value_or(0);
  const json* messages = fields.find("messages");
  if (!messages) throw ApiError(400, "'messages' is missing: expected a list of {\"role\", \"content\"}", "messages");
  if (!messages->is_array() || messages->empty()) fields.bad("messages", "a list, not empty", *messages);
  const auto ordered = parse_ordered_body(body);  // models see the order of names
  for (const auto& one : ordered.at("messages")) {
    const std::string name = str("messages[", request.messages.size(), "]");
    request.messages.push_back(
        models::text::read_message(one, [&](const std::string& field, const std::string& expected, const json& found) {
          if (field.empty()) fields.bad(name, expected, found);
          if (field == "function_call")
            throw ApiError(400, "'" + name + "." + field + "' is not supported", name + "." + field,
                           "unsupported_parameter");
          const json message = one;
          Fields(message, name + ".").bad(field, expected, found);
        }));
  }
  request.fields.format = parse_response_format(fields, ordered);
  request.tools = parse_tools(fields, ordered);
  if (request.fields.format && !request.tools.callable.empty())
    throw ApiError(
        400, "'response_format' other than text is not supported beside 'tools', unless 'tool_choice' is \"none\"",
        "response_format", "unsupported_parameter");
  if (const json* answer = fields.find("answer_token_ids")) {
    if (!answer->is_array()) fields.bad("answer_token_ids", "a list of token ids", *answer);
    request.answer = token_ids(fields, "answer_token_ids", *answer, limits.ids);
    if (!request.answer.empty() && (request.fields.format || !request.tools.callable.empty()))
      throw ApiError(400, "'answer_token_ids' is not supported beside 'response_format' and 'tools'",
                     "answer_token_ids", "unsupported_parameter");
  }
  return request;
}

TokenizeRequest parse_tokenize_request(std::string_view body) {
  const json object = parse_body(body);
  const Fields fields(object);
  TokenizeRequest request;
  const auto prompt = fields.text("prompt"), content = fields.text("content");
  if (prompt.has_value() == content.has_value())
    throw ApiError(400, "expected one of 'prompt' and 'content': the text whose tokens are asked for", "prompt");
  request.text = prompt ? *prompt : *content;
  for (const char* name : {"add_special_tokens", "add_special"})
    if (const auto add = fields.boolean(name)) request.add_special_tokens = *add;
  request.parse_special = fields.boolean("parse_special").value_or(true);
  return request;
}

std::vector<int32_t> parse_detokenize_request(std::string_view body, const RequestLimits& limits) {
  const json object = parse_body(body);
  const Fields fields(object);
  const json* tokens = fields.find("tokens");
  if (!tokens) throw ApiError(400, "'tokens' is missing: expected a list of token ids", "tokens");
  if (!tokens->is_array()) fields.bad("tokens", "a list of token ids", *tokens);
  return token_ids(fields, "tokens", *tokens, limits.ids);
}

}  // namespace braid::apps::serve
