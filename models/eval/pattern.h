// Regular expressions of task files: PCRE2 with Unicode's classes, for what Python's `re` reads the same way.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "braid/tensor/error.h"

namespace braid::models::eval {

class Pattern {
 public:
  Pattern() = default;  // none
  // `name`: where it is from, for messages. Error(kind) when it is no regular expression.
  Pattern(const std::string& pattern, const std::string& name, bool ignore_case = false,
          ErrorKind kind = ErrorKind::setting);

  explicit operator bool() const { return code_ != nullptr; }
  // The first group that is not empty of the first or last match, or all of the match where the pattern has no group.
  // Matches go from left to right, none inside another. Texts are valid UTF-8. Error(input) when the pattern backtracks
  // without end.
  std::optional<std::string> find(std::string_view text, bool last) const;
  std::string without_matches(std::string_view text) const;

 private:
  struct Code;
  template <class Take>
  void search(std::string_view text, const Take& take) const;

  std::shared_ptr<const Code> code_;
  std::string pattern_;
};

}  // namespace braid::models::eval
