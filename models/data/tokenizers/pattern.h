// The `pattern` of Split and Replace: {"String": s} or {"Regex": r}.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "braid/models/data/tokenizers/regex.h"
#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

class Pattern {
 public:
  explicit Pattern(const Section& section);  // the object
  explicit Pattern(std::string literal);
  Pattern(std::string_view regex, const std::string& where);

  // each(begin, end) for every match, from left to right.
  template <typename Each>
  void for_each_match(std::string_view text, const Each& each) const {
    size_t begin = 0, end = 0;
    if (regex_) {
      Regex::Search search(*regex_, text);
      while (search.next(begin, end)) each(begin, end);
    } else {
      while ((begin = text.find(literal_, end)) != std::string_view::npos) each(begin, end = begin + literal_.size());
    }
  }
  // The end of the match that begins where the text does; 0: there is none.
  size_t match_at_begin(std::string_view text) const;
  std::string replace(std::string_view text, std::string_view content) const;

 private:
  std::string literal_;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace braid::models::text
