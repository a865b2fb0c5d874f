#include "braid/models/eval/filters.h"

#include <algorithm>

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
constexpr FilterRule kFilters[] = {{"strip", 0},     {"lstrip", 0},   {"rstrip", 0},      {"capitalize", 0},
                                   {"before", 1},    {"after", 1},    {"before_last", 1}, {"after_last", 1},
                                   {"last_word", 0}, {"but_last", 0}, {"replace", 2},     {"without_brackets", 0},
                                   {"wikitext", 0}};

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
    filters_.push_back(std::move(filter));
  }
}

std::string Filters::operator()(std::string text, const Location& location) const {
  for (const Filter& filter : filters_) {
    const std::string& f = filter.name;
    if (f == "strip" || f == "rstrip") text = std::string(rstrip(text));
    if (f == "strip" || f == "lstrip") text = std::string(lstrip(text));
    if (f == "capitalize") text = capitalize(text);
    if (f == "last_word") text = text.substr(text.rfind(' ') + 1);
    if (f == "but_last") text = text.substr(0, text.find(' ') == std::string::npos ? 0 : text.rfind(' '));
    if (f == "replace") text = replaced(text, filter.arguments[0], filter.arguments[1]);
    if (f == "without_brackets") text = without_brackets(text);
    if (f == "wikitext") text = wikitext_as_text(std::move(text));
    if (!f.starts_with("before") && !f.starts_with("after")) continue;
    const std::string& mark = filter.arguments[0];
    const size_t at = f.ends_with("_last") ? text.rfind(mark) : text.find(mark);
    if (at == std::string::npos) bad_line(location, "a text with '" + mark + "'", in_quotes(text));
    text = f.starts_with("before") ? text.substr(0, at) : text.substr(at + mark.size());
  }
  return text;
}

}  // namespace braid::models::eval
