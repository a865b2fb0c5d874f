#include "braid/models/eval/filters.h"

#include <algorithm>

#include "braid/models/data/tokenizers/unicode.h"
#include "braid/models/eval/python_text.h"
#include "braid/models/eval/wikitext.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {
namespace {

struct FilterRule {
  const char* name;
  size_t arguments;
};
constexpr FilterRule kFilters[] = {{"strip", 0},      {"lstrip", 0},   {"rstrip", 0},      {"capitalize", 0},
                                   {"before", 1},     {"after", 1},    {"before_last", 1}, {"after_last", 1},
                                   {"last_word", 0},  {"but_last", 0}, {"replace", 2},     {"without_brackets", 0},
                                   {"wikitext", 0},   {"lower", 0},    {"first_line", 0},  {"first_match", 1},
                                   {"last_match", 1}, {"delete", 1}};

// Without each [ up to the next ] on the same line.
std::string without_brackets(const std::string& text) {
  std::string result;
  size_t begin = 0;
  for (size_t open = 0; (open = text.find('[', open)) != std::string::npos;) {
    const size_t close = text.find_first_of("]\n", open);
    if (close == std::string::npos) break;
    if (text[close] == ']') {
      result.append(text, begin, open - begin);
      begin = close + 1;
    }
    open = close + 1;
  }
  return result.append(text, begin, std::string::npos);
}

// Words behind a filter's name, each in single quotes.
std::vector<std::string> quoted_words(std::string_view text, const std::string& name) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const size_t end = text[at] == '\'' ? text.find('\'', at + 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      bad_format(name, "arguments of filters in single quotes", in_quotes(std::string(text.substr(at))));
    words.emplace_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return words;
}

}  // namespace

std::string in_quotes(std::string_view text) { return "'" + detail::preview(text) + "'"; }

void bad_format(const std::string& name, const std::string& expected, const std::string& found) {
  fail(ErrorKind::setting, "bad text for " + name + ": expected " + expected + ", found " + found);
}

void bad_line(const Location& location, const std::string& expected, const std::string& found) {
  fail(ErrorKind::input, str("bad line ", location.line, " in ", location.file, ": expected ", expected, ", found ",
                             found, "; correct the line or remove it"));
}

std::vector<std::string> split_unquoted(std::string_view text, char end) {
  std::vector<std::string> parts = {""};
  bool inside = false;
  for (const char c : text) {
    if (c == '\'') inside = !inside;
    if (c == end && !inside)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Filters::Filters(std::string_view text, const std::string& name) {
  for (const std::string& part : split_unquoted(text, '|')) {
    const std::string words(detail::trim(part));
    const size_t blank = words.find(' ');
    Filter filter{words.substr(0, blank), {}};
    if (blank != std::string::npos) filter.arguments = quoted_words(std::string_view(words).substr(blank), name);
    const auto* rule = std::ranges::find_if(kFilters, [&](const FilterRule& f) { return filter.name == f.name; });
    if (rule == std::end(kFilters)) {
      std::vector<std::string> names;
      for (const FilterRule& f : kFilters) names.emplace_back(f.name);
      bad_format(name, "one of the filters " + detail::join(names, ", "),
                 in_quotes(filter.name) + detail::did_you_mean(filter.name, names));
    }
    if (filter.arguments.size() != rule->arguments || (rule->arguments > 0 && filter.arguments[0].empty()))
      bad_format(name, str(rule->arguments, " arguments of the filter ", filter.name, ", not empty"), in_quotes(words));
    if (filter.name.ends_with("_match") || filter.name == "delete")
      filter.pattern = Pattern(filter.arguments[0], str(filter.name, " of ", name));
    filters_.push_back(std::move(filter));
  }
}

std::optional<std::string> Filters::apply(const Filter& filter, std::string text) {
  const std::string& f = filter.name;
  if (f == "strip") return std::string(strip(text));
  if (f == "lstrip") return std::string(lstrip(text));
  if (f == "rstrip") return std::string(rstrip(text));
  if (f == "capitalize") return capitalize(text);
  if (f == "lower") return text::lower_case(text);
  if (f == "first_line") {
    const size_t end = text.find('\n');
    if (end == std::string::npos) return text;
    return text.substr(0, end > 0 && text[end - 1] == '\r' ? end - 1 : end);
  }
  if (f == "last_word") return text.substr(text.rfind(' ') + 1);
  if (f == "but_last") return text.substr(0, text.find(' ') == std::string::npos ? 0 : text.rfind(' '));
  if (f == "replace") return replaced(text, filter.arguments[0], filter.arguments[1]);
  if (f == "without_brackets") return without_brackets(text);
  if (f == "wikitext") return wikitext_as_text(std::move(text));
  if (f == "delete") return filter.pattern.without_matches(text);
  if (filter.pattern) return filter.pattern.find(text, f == "last_match");
  const std::string& mark = filter.arguments[0];  // of before and after
  const size_t at = f.ends_with("_last") ? text.rfind(mark) : text.find(mark);
  if (at == std::string::npos) return std::nullopt;
  return f.starts_with("before") ? text.substr(0, at) : text.substr(at + mark.size());
}

std::string Filters::operator()(std::string text, const Location& location) const {
  for (const Filter& filter : filters_) {
    std::optional<std::string> changed = apply(filter, text);
    if (!changed)
      bad_line(location, (filter.pattern ? "a text with a match of '" : "a text with '") + filter.arguments[0] + "'",
               in_quotes(text));
    text = std::move(*changed);
  }
  return text;
}

std::optional<std::string> Filters::find(std::string text) const {
  std::optional<std::string> found = std::move(text);
  for (size_t i = 0; found && i < filters_.size(); ++i) found = apply(filters_[i], std::move(*found));
  return found;
}

}  // namespace braid::models::eval
