#include "braid/models/data/tokenizers/pattern.h"

namespace braid::models::text {

Pattern::Pattern(const Section& section) {
  if (section.has("String")) {
    literal_ = section.text("String");
    if (literal_.empty()) section.fail("String", "at least one character");
  } else if (section.has("Regex")) {
    regex_ = std::make_shared<const Regex>(section.text("Regex"), section.where());
  } else {
    section.fail("", "a pattern: {\"String\": ..} or {\"Regex\": ..}");
  }
}

Pattern::Pattern(std::string literal) : literal_(std::move(literal)) {}

Pattern::Pattern(std::string_view regex, const std::string& where)
    : regex_(std::make_shared<const Regex>(regex, where)) {}

size_t Pattern::match_at_begin(std::string_view text) const {
  if (!regex_) return text.starts_with(literal_) ? literal_.size() : 0;
  size_t begin = 0, end = 0;
  Regex::Search search(*regex_, text);
  while (search.next(begin, end))
    if (end > 0) return begin == 0 ? end : 0;
  return 0;
}

std::string Pattern::replace(std::string_view text, std::string_view content) const {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  for_each_match(text, [&](size_t begin, size_t end) {
    out.append(text, copied, begin - copied);
    out += content;
    copied = end;
  });
  out.append(text, copied, std::string_view::npos);
  return out;
}

}  // namespace braid::models::text
