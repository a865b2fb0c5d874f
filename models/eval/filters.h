// Changes of a text, one after another, as a text: "strip|replace ' [title]' '. '".
//
// strip, lstrip, rstrip     without white space at the sides
// capitalize                the first letter in title case, the others in lower case
// last_word, but_last       the part behind the last blank, the part before it ("" where there is none)
// before 'x', after 'x'     the part before, behind the first 'x'; the text must contain it
// before_last, after_last   the same with the last 'x'
// replace 'x' 'y'           every x becomes y
// without_brackets          without [every such part] of a line
// wikitext                  WikiText without its marks (wikitext.h)
// lower                     in lower case
// first_line                the part before the first line end, "\n" or "\r\n"
// first_match, last_match 'r'   the first or last match of the regular expression r: its first group that is not empty,
//                           all of it where r has no group; the text must contain one (pattern.h)
// delete 'r'                without the matches of r
//
// White space and letters are those of Unicode, as Python's str has them (python_text.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/eval/pattern.h"

namespace braid::models::eval {

// A line of a file of items, for messages.
struct Location {
  std::string file;
  int64_t line = 0;
};
// Throws Error(input): "bad line 3 in FILE: expected <expected>, found <found>; correct the line or remove it".
[[noreturn]] void bad_line(const Location& location, const std::string& expected, const std::string& found);
// Throws Error(setting): "bad text for NAME: expected EXPECTED, found FOUND".
[[noreturn]] void bad_format(const std::string& name, const std::string& expected, const std::string& found);

std::string in_quotes(std::string_view text);  // for messages

// The places of `end` in the text that do not stand in single quotes cut it into these parts.
std::vector<std::string> split_unquoted(std::string_view text, char end);

class Filters {
 public:
  Filters() = default;  // none
  // `name`: where the text is from, for messages. Error(setting) names the part that is wrong.
  Filters(std::string_view text, const std::string& name);

  bool empty() const { return filters_.empty(); }
  // Error(input) as bad_line() where the text lacks the argument of before or after, or a match.
  std::string operator()(std::string text, const Location& location) const;
  // The same; none where the text lacks it.
  std::optional<std::string> find(std::string text) const;

 private:
  struct Filter {
    std::string name;
    std::vector<std::string> arguments;
    Pattern pattern = {};
  };
  // The changed text; none where it lacks what the filter needs.
  static std::optional<std::string> apply(const Filter& filter, std::string text);

  std::vector<Filter> filters_;
};

}  // namespace braid::models::eval
