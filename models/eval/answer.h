// Whether a generated answer is the right one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "braid/models/eval/pattern.h"

namespace braid::models::eval {

enum class MatchKind : uint8_t { exact, contains, regex };

struct AnswerRule {
  MatchKind kind = MatchKind::exact;  // regex: the pattern matches somewhere in the answer
  bool ignore_case = false;
  bool ignore_punctuation = false;  // of ASCII, as Python's string.punctuation
  bool ignore_commas = false;       // between two digits
};

// The right answers of an item, of which one must match.
class RightAnswers {
 public:
  // `name`: where they are from, for messages. Error(input) for a text that is no pattern.
  RightAnswers(const AnswerRule& rule, const std::vector<std::string>& answers, const std::string& name);
  bool matches(const std::string& answer) const;

 private:
  AnswerRule rule_;
  std::vector<std::string> texts_;
  std::vector<Pattern> patterns_;
};

}  // namespace braid::models::eval
