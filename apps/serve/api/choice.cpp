#include "apps/serve/api/choice.h"

#include <algorithm>
#include <iterator>

#include "braid/tensor/base/utf8.h"

namespace braid::apps::serve {
namespace {

// Characters of a valid text.
int64_t count_characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

void Piece::append(Piece more) {
  text += more.text;
  std::move(more.scores.begin(), more.scores.end(), std::back_inserter(scores));
  tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
  if (!more.prompt.empty()) prompt = std::move(more.prompt);
  for (CallPart& part : more.calls) {
    if (part.index == std::ssize(calls))
      calls.push_back(std::move(part));
    else
      calls[static_cast<size_t>(part.index)].arguments += part.arguments;
  }
  if (more.finish_reason) finish_reason = more.finish_reason;
}

std::string token_text(const models::text::Tokenizer& tokenizer, int32_t token) {
  if (token < 0 || token >= tokenizer.vocab_size()) return "";
  return detail::replace_invalid_utf8(tokenizer.token_bytes(token));
}

Choice::Choice(const models::text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt, const Settings& settings)
    : tokenizer_(tokenizer),
      prompt_(prompt),
      settings_(settings),
      text_(tokenizer, settings.calls ? std::vector<std::string>() : settings.stops),
      places_(tokenizer) {
  if (settings.calls) calls_.emplace(*settings.calls);
  text_.begin(prompt);
  places_.begin(prompt);
}

// How many U+FFFD a text begins with.
static int64_t leading_replacements(std::string_view text) {
  constexpr std::string_view replacement = "\uFFFD";
  int64_t n = 0;
  for (; text.starts_with(replacement); text.remove_prefix(replacement.size())) ++n;
  return n;
}

// One entry, and the text that the token completes. It begins where the text ends, or at the character that its bytes
// continue; behind what was held back and turns out to be no character.
std::string Choice::add_token(int32_t token, const models::TokenScore* score, models::text::StreamDecoder& decoder,
                              Piece& piece) {
  const bool held_back = decoder.holds_back();
  std::string text = decoder.push(token);
  if (settings_.scores) add_score(token, score, held_back ? leading_replacements(text) : 0, piece);
  characters_ += count_characters(text);
  return text;
}

void Choice::add_score(int32_t token, const models::TokenScore* score, int64_t behind, Piece& piece) {
  ScoredToken entry{.token = token, .logprob = {}, .top = {}, .offset = characters_ + behind};
  if (score) entry.logprob = score->logprob, entry.top = score->top;
  piece.scores.push_back(std::move(entry));
}

// The prompt, where it is a part of the text.
void Choice::begin(const models::Update& update, Piece& piece) {
  begun_ = true;
  if (settings_.ids) piece.prompt = prompt_;
  if (!settings_.echo) return;
  models::text::StreamDecoder decoder(tokenizer_, false);
  for (size_t i = 0; i < prompt_.size(); ++i) {
    const bool scored = settings_.scores && i > 0;
    piece.text += add_token(prompt_[i], scored ? &update.prompt_scores.at(i - 1) : nullptr, decoder, piece);
  }
  const std::string rest = decoder.finish();
  characters_ += count_characters(rest);
  piece.text += rest;
}

// Special tokens have no text, except those in the marks around calls.
std::string Choice::text_of(int32_t token) {
  if (!calls_ || !tokenizer_.is_special(token)) return text_.push(token);
  const std::string bytes(tokenizer_.token_bytes(token));
  const models::text::CallMarks& marks = settings_.calls->marks;
  if (marks.begin.find(bytes) == std::string::npos && marks.end.find(bytes) == std::string::npos)
    return text_.push(token);
  return text_.finish() + bytes;
}

void Choice::add_text(const std::string& text, Piece& piece) {
  piece.text += calls_ ? calls_->push(text, piece.calls) : text;
}

Piece Choice::update(const models::Update& update) {
  Piece piece;
  if (finished_) return piece;
  if (update.finished && update.reason == models::StopReason::failed) {
    finished_ = true;
    std::rethrow_exception(update.error);
  }
  if (!begun_) begin(update, piece);
  shared_tokens_ = std::max(shared_tokens_, update.shared_tokens);
  for (size_t i = 0; i < update.tokens.size() && !stopped(); ++i) {
    const int32_t token = update.tokens[i];
    ++new_tokens_;
    if (settings_.ids) piece.tokens.push_back(token);
    add_text(text_of(token), piece);
    if (settings_.scores) add_token(token, &update.scores.at(i), places_, piece);
  }
  finished_ = update.finished || stopped();
  if (!finished_) return piece;
  if (settings_.scores && !stopped() && update.scores.size() > update.tokens.size())  // of the end token
    add_score(update.scores.back().token, &update.scores.back(), leading_replacements(places_.finish()), piece);
  add_text(text_.finish(), piece);
  if (calls_) piece.text += calls_->finish();
  const bool by_length =
      !stopped() && (update.reason == models::StopReason::length || update.reason == models::StopReason::context_full);
  piece.finish_reason = by_length ? "length" : calls_ && calls_->complete() > 0 ? "tool_calls" : "stop";
  return piece;
}

}  // namespace braid::apps::serve
