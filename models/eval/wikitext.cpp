#include "braid/models/eval/wikitext.h"

#include <initializer_list>
#include <string_view>
#include <utility>

#include "braid/models/eval/python_text.h"

namespace braid::models::eval {
namespace {

using Replacements = std::initializer_list<std::pair<const char*, const char*>>;

std::string replaced_all(std::string text, Replacements replacements) {
  for (const auto& [from, to] : replacements) text = replaced(text, from, to);
  return text;
}

// From each `open` up to the next `close`: the text between them without white space at its ends.
std::string stripped_inside(std::string_view text, char open, char close) {
  std::string result;
  for (size_t begin; (begin = text.find(open)) != std::string_view::npos;) {
    const size_t end = text.find(close, begin + 1);
    if (end == std::string_view::npos) break;
    result.append(text.substr(0, begin + 1)).append(strip(text.substr(begin + 1, end - begin - 1))) += close;
    text.remove_prefix(end + 1);
  }
  return result.append(text);
}

// The harness replaces the pattern /' [0-9]/ by the pattern's own text. That is its rule, so it is the rule here.
std::string with_digits_replaced(std::string_view text) {
  std::string result;
  for (size_t at; (at = text.find("/' ")) != std::string_view::npos;) {
    const bool digit = at + 4 < text.size() && text[at + 3] >= '0' && text[at + 3] <= '9' && text[at + 4] == '/';
    result.append(text.substr(0, at)).append(digit ? "/'[0-9]/" : "/");
    text.remove_prefix(at + (digit ? 5 : 1));
  }
  return result.append(text);
}

}  // namespace

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != std::string::npos; begin = at + from.size())
    result.append(text, begin, at - begin).append(to);
  return result.append(text, begin, std::string::npos);
}

std::string wikitext_as_text(std::string page) {
  page = with_digits_replaced(replaced(page, "s '", "s'"));
  page = replaced_all(std::move(page), {{" @-@ ", "-"},
                                        {" @,@ ", ","},
                                        {" @.@ ", "."},
                                        {" : ", ": "},
                                        {" ; ", "; "},
                                        {" . ", ". "},
                                        {" ! ", "! "},
                                        {" ? ", "? "},
                                        {" , ", ", "}});
  for (const auto& [open, close] :
       {std::pair{'(', ')'}, std::pair{'[', ']'}, std::pair{'{', '}'}, std::pair{'"', '"'}, std::pair{'\'', '\''}})
    page = stripped_inside(page, open, close);
  return replaced_all(std::move(page), {{"= = = =", "===="},
                                        {"= = =", "==="},
                                        {"= =", "=="},
                                        {" \u00b0 ", "\u00b0"},
                                        {" \n", "\n"},
                                        {"\n ", "\n"},
                                        {" N ", " 1 "},
                                        {" 's", "'s"}});
}

}  // namespace braid::models::eval
