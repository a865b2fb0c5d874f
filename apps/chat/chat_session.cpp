#include "apps/chat/chat_session.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "apps/cli/text.h"
#include "braid/models/inference/text_stream.h"

namespace braid::apps {
namespace {

using models::text::ChatTurn;
constexpr const char *user = "user", *assistant = "assistant", *system_role = "system";

bool has_system(const std::vector<ChatTurn>& turns) { return !turns.empty() && turns[0].role == system_role; }

}  // namespace

ChatSession::ChatSession(const models::LanguageModel& model, const models::text::Tokenizer& tokenizer,
                         ChatOptions options)
    : model_(model),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      end_of_answer_(models::text::answer_end(options_.chat)),
      engine_(model, {.sequences = 1, .positions = model.max_sequence_length()}) {
  models::SamplingOptions& s = options_.sampling;
  settings_ = {
      {"temperature", &s.temperature, "0: always the likeliest token", models::between(0, 100)},
      {"top-k", &s.top_k, "only the K likeliest tokens, 0 = all", models::at_least(0)},
      {"top-p", &s.top_p, "only the likeliest tokens that make up P; 0: the likeliest one", models::between(0, 1)},
      {"min-p", &s.min_p, "only tokens at least P times as likely as the likeliest", models::between(0, 1)},
      {"repetition-penalty", &s.repetition_penalty, "1 = none; above 1 discourages tokens seen before",
       models::between(0.01, 100)},
      {"tokens", &options_.max_tokens, "maximum number of tokens of an answer", models::at_least(1)}};
  system(options_.system);
}

void ChatSession::system(const std::string& text) {
  if (has_system(turns_)) turns_.erase(turns_.begin());
  if (!text.empty()) turns_.insert(turns_.begin(), {system_role, text});
}

void ChatSession::reset() { turns_.resize(has_system(turns_) ? 1 : 0); }

void ChatSession::undo() {
  check(turns_.size() >= 2 && turns_.back().role == assistant, ErrorKind::setting,
        "nothing was said yet: there is nothing to take back");
  turns_.resize(turns_.size() - 2);
}

void ChatSession::set(const std::string& name, const std::string& value) {
  const models::Setting* setting = models::find_setting(settings_, name);
  check(setting != nullptr, ErrorKind::setting, [&] {
    std::vector<std::string> names;
    for (const models::Setting& s : settings_) names.push_back(s.name);
    return "there is no setting '" + preview(name) + "': expected one of " + join(names, ", ") +
           did_you_mean(name, names);
  });
  const std::optional<models::Value> parsed = models::parse_value(setting->rule, value);
  check(parsed && models::assign(*setting, *parsed), ErrorKind::setting,
        [&] { return models::bad_value(name, setting->rule, "'" + preview(value) + "'"); });
}

// The tokens of as many of the newest turns as leave space for an answer. The system's turn stays; turns go in pairs,
// so that the rest begins with what the user said.
std::vector<int32_t> ChatSession::prompt(int64_t& dropped) const {
  const int64_t longest = model_.max_sequence_length();
  const int64_t reserve = std::min(options_.max_tokens, longest / 4);
  std::vector<ChatTurn> kept = turns_;
  const auto first = static_cast<std::ptrdiff_t>(has_system(kept));
  for (dropped = 0;; dropped += 2) {
    std::vector<int32_t> tokens = models::text::chat_prompt(kept, nullptr, options_.chat, tokenizer_);
    if (std::ssize(tokens) + reserve <= longest) return tokens;
    if (std::ssize(kept) - first < 3) {  // what was said last, alone
      check(std::ssize(tokens) < longest, ErrorKind::setting, [&] {
        return str("this is too long for the model: expected fewer than ", longest, " tokens, found ", tokens.size());
      });
      return tokens;
    }
    kept.erase(kept.begin() + first, kept.begin() + first + 2);
  }
}

Answer ChatSession::say(const std::string& text, const std::function<void(std::string_view)>& print,
                        const std::function<bool()>& stop) {
  turns_.push_back({user, text});
  try {
    return draw(print, stop);
  } catch (...) {
    turns_.pop_back();
    throw;
  }
}

Answer ChatSession::again(const std::function<void(std::string_view)>& print, const std::function<bool()>& stop) {
  check(!turns_.empty() && turns_.back().role == assistant, ErrorKind::setting,
        "nothing was said yet: there is no answer to draw anew");
  const ChatTurn before = turns_.back();
  turns_.pop_back();
  try {
    return draw(print, stop);
  } catch (...) {
    turns_.push_back(before);
    throw;
  }
}

Answer ChatSession::draw(const std::function<void(std::string_view)>& print, const std::function<bool()>& stop) {
  const auto start = std::chrono::steady_clock::now();
  Answer answer;
  std::vector<std::string> stops;
  if (!end_of_answer_.empty()) stops.push_back(end_of_answer_);
  models::TextStream stream(tokenizer_, stops);
  models::GenerationRequest request{.prompt = prompt(answer.dropped),
                                    .max_tokens = options_.max_tokens,
                                    .sampling = options_.sampling,
                                    .ends = options_.ends};
  stream.begin(request.prompt);
  // Where the end of a turn is a special token, it ends the text as a token: its text never appears.
  if (const std::vector<int32_t> end = tokenizer_.encode(end_of_answer_, true); end.size() == 1)
    request.ends.push_back(end[0]);
  std::exception_ptr error;
  const auto take = [&](const std::string& text) {
    answer.text += text;
    if (!text.empty()) print(text);
  };
  request.on_update = [&](const models::Update& update) {
    for (const int32_t token : update.tokens) {
      if (stream.stopped()) break;
      take(stream.push(token));
      ++answer.tokens;
    }
    if (update.finished) {
      answer.reason = update.reason, answer.prompt_tokens = update.prompt_tokens;
      answer.shared_tokens = update.shared_tokens, error = update.error;
    }
    return !stream.stopped() && !(stop && stop());
  };
  engine_.submit(std::move(request));
  engine_.run();
  if (error) std::rethrow_exception(error);
  take(stream.finish());
  ++options_.sampling.seed;
  turns_.push_back({assistant, answer.text});
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answer;
}

std::string ChatSession::json() const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (const ChatTurn& turn : turns_) messages.push_back({{"role", turn.role}, {"content", turn.content}});
  return nlohmann::ordered_json{{"messages", messages}}.dump(-1, ' ', false,
                                                             nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace braid::apps
