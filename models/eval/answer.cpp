#include "braid/models/eval/answer.h"

#include <algorithm>

#include "braid/models/data/tokenizers/unicode.h"

namespace braid::models::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_punctuation(char c) {
  return c > ' ' && c <= '~' && !is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z');
}

// What the rule compares of a text.
std::string compared(const AnswerRule& rule, const std::string& text) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (rule.ignore_punctuation && is_punctuation(c)) continue;
    const bool comma = c == ',' && i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!(rule.ignore_commas && comma)) kept += c;
  }
  return rule.ignore_case ? text::lower_case(kept) : kept;
}

}  // namespace

RightAnswers::RightAnswers(const AnswerRule& rule, const std::vector<std::string>& answers, const std::string& name)
    : rule_(rule) {
  for (const std::string& answer : answers) {
    if (rule.kind == MatchKind::regex)
      patterns_.emplace_back(answer, name, rule.ignore_case, ErrorKind::input);
    else
      texts_.push_back(compared(rule, answer));
  }
}

bool RightAnswers::matches(const std::string& answer) const {
  if (rule_.kind == MatchKind::regex)
    return std::ranges::any_of(patterns_, [&](const Pattern& p) { return p.find(answer, false).has_value(); });
  const std::string own = compared(rule_, answer);
  return std::ranges::any_of(texts_, [&](const std::string& text) {
    return rule_.kind == MatchKind::exact ? own == text : own.find(text) != std::string::npos;
  });
}

}  // namespace braid::models::eval
