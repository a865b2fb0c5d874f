#include "apps/serve/api/responses.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace braid::apps::serve {
namespace {

using nlohmann::ordered_json;

// JSON has no infinity. The same double prints as the same digits, so that clients may compare scores for equality.
double finite(double logprob) { return std::max(logprob, -9999.0); }

std::string text_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}
std::string event_of(const ordered_json& value) { return "data: " + text_of(value) + "\n\n"; }

ordered_json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.shared_tokens}}}};
}

// A part of a stream has its index, and id and name at its beginning alone.
ordered_json calls_json(const std::vector<CallPart>& calls, bool stream) {
  ordered_json list = ordered_json::array();
  for (const CallPart& call : calls) {
    ordered_json one = ordered_json::object(), function = ordered_json::object();
    if (stream) one["index"] = call.index;
    if (!call.id.empty()) one["id"] = call.id, one["type"] = "function", function["name"] = call.name;
    function["arguments"] = call.arguments;
    one["function"] = std::move(function);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

// Four lists with an entry for each token. top_logprobs: the likeliest and the token itself by their texts; of tokens
// with the same text (bytes that are no character) the larger value stays.
ordered_json ResponseWriter::completion_scores(const std::vector<ScoredToken>& scores) const {
  ordered_json tokens = ordered_json::array(), logprobs = ordered_json::array(), tops = ordered_json::array(),
               offsets = ordered_json::array();
  for (const ScoredToken& score : scores) {
    tokens.push_back(token_text(tokenizer_, score.token));
    offsets.push_back(score.offset);
    if (!score.logprob) {
      logprobs.push_back(nullptr), tops.push_back(nullptr);
      continue;
    }
    logprobs.push_back(finite(*score.logprob));
    ordered_json top = ordered_json::object();
    const auto keep_larger = [&](int32_t token, double logprob) {
      const auto [entry, added] = top.emplace(token_text(tokenizer_, token), finite(logprob));
      if (!added && entry->get<double>() < finite(logprob)) *entry = finite(logprob);
    };
    for (const auto& [token, logprob] : score.top) keep_larger(token, logprob);
    keep_larger(score.token, *score.logprob);
    tops.push_back(std::move(top));
  }
  ordered_json lists = {
      {"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", tops}, {"text_offset", offsets}};
  if (settings_.ids) lists.update(chat_scores(scores));  // a text does not tell a token: several may have the same
  return lists;
}

ordered_json ResponseWriter::chat_scores(const std::vector<ScoredToken>& scores) const {
  const auto entry = [&](int32_t token, double logprob) {
    ordered_json bytes = ordered_json::array();
    if (token < tokenizer_.vocab_size())
      for (const char c : tokenizer_.token_bytes(token)) bytes.push_back(static_cast<unsigned char>(c));
    ordered_json one = {{"token", token_text(tokenizer_, token)}, {"logprob", finite(logprob)}, {"bytes", bytes}};
    if (settings_.ids) one["token_id"] = token;
    return one;
  };
  ordered_json content = ordered_json::array();
  for (const ScoredToken& score : scores) {
    ordered_json one = entry(score.token, score.logprob.value_or(0));
    if (!score.logprob) one["logprob"] = nullptr;
    ordered_json& top = one["top_logprobs"] = ordered_json::array();
    for (const auto& [token, logprob] : score.top) top.push_back(entry(token, logprob));
    content.push_back(std::move(one));
  }
  return {{"content", content}};
}

ordered_json ResponseWriter::frame(bool stream) const {
  const char* object = !settings_.chat ? "text_completion" : stream ? "chat.completion.chunk" : "chat.completion";
  return {{"id", settings_.id}, {"object", object}, {"created", settings_.created}, {"model", settings_.model}};
}

ordered_json ResponseWriter::choice(int64_t index, const Piece& piece, bool stream) const {
  ordered_json result = {{"index", index}};
  if (!settings_.chat) {
    result["text"] = piece.text;
  } else if (stream) {
    result["delta"] = ordered_json::object();
    const bool scored = !piece.scores.empty() && piece.calls.empty();
    if (!piece.text.empty() || scored) result["delta"]["content"] = piece.text;
    if (!piece.calls.empty()) result["delta"]["tool_calls"] = calls_json(piece.calls, true);
  } else {
    result["message"] = {{"role", "assistant"}, {"content", piece.text}};
    if (!piece.calls.empty()) {
      if (piece.text.empty()) result["message"]["content"] = nullptr;
      result["message"]["tool_calls"] = calls_json(piece.calls, false);
    }
  }
  result["finish_reason"] = piece.finish_reason ? ordered_json(piece.finish_reason) : ordered_json();
  result["logprobs"] = nullptr;
  if (settings_.scores && !(stream && piece.scores.empty()))
    result["logprobs"] = settings_.chat ? chat_scores(piece.scores) : completion_scores(piece.scores);
  if (settings_.ids) result["token_ids"] = piece.tokens;
  if (!settings_.chat && !piece.prompt.empty()) result["prompt_token_ids"] = piece.prompt;
  return result;
}

std::string ResponseWriter::whole(const std::vector<Piece>& choices, const Usage& usage) const {
  ordered_json result = frame(false), list = ordered_json::array();
  for (size_t i = 0; i < choices.size(); ++i) list.push_back(choice(static_cast<int64_t>(i), choices[i], false));
  result["choices"] = std::move(list);
  if (settings_.chat && settings_.ids) result["prompt_token_ids"] = choices.at(0).prompt;
  result["usage"] = usage_json(usage);
  return text_of(result) + "\n";
}

std::string ResponseWriter::begin_events(int64_t choices) const {
  std::string events;
  for (int64_t i = 0; settings_.chat && i < choices; ++i) {
    ordered_json result = frame(true);
    result["choices"] = ordered_json::array({{{"index", i},
                                              {"delta", {{"role", "assistant"}, {"content", ""}}},
                                              {"finish_reason", nullptr},
                                              {"logprobs", nullptr}}});
    if (settings_.usage) result["usage"] = nullptr;
    events += event_of(result);
  }
  return events;
}

std::string ResponseWriter::event(int64_t index, const Piece& piece) const {
  ordered_json result = frame(true);
  result["choices"] = ordered_json::array({choice(index, piece, true)});
  if (settings_.chat && !piece.prompt.empty()) result["prompt_token_ids"] = piece.prompt;
  if (settings_.usage) result["usage"] = nullptr;
  return event_of(result);
}

std::string ResponseWriter::end_events(const Usage& usage) const {
  std::string events;
  if (settings_.usage) {
    ordered_json result = frame(true);
    result["choices"] = ordered_json::array();
    result["usage"] = usage_json(usage);
    events = event_of(result);
  }
  return events + "data: [DONE]\n\n";
}

std::string ResponseWriter::error_event(const std::string& error_body) { return "data: " + error_body + "\n"; }

}  // namespace braid::apps::serve
