#include "braid/models/eval/python_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/base/utf8.h"

namespace braid::models::eval {
namespace {

// Words of a letter and its title case: those of several code points (SpecialCasing.txt of Unicode).
constexpr std::u32string_view kTitleCases =
    U"\u00dfSs \u0149\u02bcN \u01f0J\u030c \u0390\u0399\u0308\u0301 \u03b0\u03a5\u0308\u0301 \u0587\u0535\u0582 "
    U"\u1e96H\u0331 \u1e97T\u0308 \u1e98W\u030a \u1e99Y\u030a \u1e9aA\u02be \u1f50\u03a5\u0313 "
    U"\u1f52\u03a5\u0313\u0300 \u1f54\u03a5\u0313\u0301 \u1f56\u03a5\u0313\u0342 \u1fb2\u1fba\u0345 "
    U"\u1fb4\u0386\u0345 \u1fb6\u0391\u0342 \u1fb7\u0391\u0342\u0345 \u1fc2\u1fca\u0345 \u1fc4\u0389\u0345 "
    U"\u1fc6\u0397\u0342 \u1fc7\u0397\u0342\u0345 \u1fd2\u0399\u0308\u0300 \u1fd3\u0399\u0308\u0301 "
    U"\u1fd6\u0399\u0342 \u1fd7\u0399\u0308\u0342 \u1fe2\u03a5\u0308\u0300 \u1fe3\u03a5\u0308\u0301 "
    U"\u1fe4\u03a1\u0313 \u1fe6\u03a5\u0342 \u1fe7\u03a5\u0308\u0342 \u1ff2\u1ffa\u0345 \u1ff4\u038f\u0345 "
    U"\u1ff6\u03a9\u0342 \u1ff7\u03a9\u0342\u0345 \ufb00Ff \ufb01Fi \ufb02Fl \ufb03Ffi \ufb04Ffl \ufb05St "
    U"\ufb06St \ufb13\u0544\u0576 \ufb14\u0544\u0565 \ufb15\u0544\u056b \ufb16\u054e\u0576 \ufb17\u0544\u056d";

bool in(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// Cased and Case_Ignorable of Unicode; what is ignorable is looked through.
bool is_cased(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         c == 0xAA || c == 0xBA || in(c, 0x2160, 0x217F) || in(c, 0x24B6, 0x24E9) || in(c, 0x1F130, 0x1F149) ||
         in(c, 0x1F150, 0x1F169) || in(c, 0x1F170, 0x1F189);
}
bool is_case_ignorable(char32_t c) {
  constexpr std::u32string_view marks =
      U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return marks.find(c) != marks.npos;
  }
}

// Is the sigma at text[begin, end) the last letter of its word, and not the only one?
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  char32_t c = 0;
  while (begin > 0 && is_case_ignorable(c = text::previous_code_point(text, begin))) c = 0;
  if (!is_cased(c)) return false;
  c = 0;
  while (end < text.size() && is_case_ignorable(c = text::next_code_point(text, end))) c = 0;
  return !is_cased(c);
}

std::string title_case(char32_t c) {
  std::string text;
  for (size_t at = 0, end; at < kTitleCases.size(); at = end + 1) {
    end = std::min(kTitleCases.find(U' ', at), kTitleCases.size());
    if (kTitleCases[at] != c) continue;
    for (const char32_t part : kTitleCases.substr(at + 1, end - at - 1)) text::append_utf8(text, part);
    return text;
  }
  text::append_utf8(text, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  return text;
}

}  // namespace

bool is_space(char32_t c) { return text::is_white_space(c) || in(c, 0x1C, 0x1F); }

std::string_view lstrip(std::string_view text) {
  while (detail::utf8_prefix(text) > 0) {
    size_t end = 0;
    if (!is_space(text::next_code_point(text, end))) break;
    text.remove_prefix(end);
  }
  return text;
}

std::string_view rstrip(std::string_view text) {
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    const std::string_view last = text.substr(at);
    if (detail::utf8_prefix(last) != static_cast<int>(last.size())) break;
    size_t begin = at;
    if (!is_space(text::next_code_point(text, begin))) break;
    text = text.substr(0, at);
  }
  return text;
}

std::string_view strip(std::string_view text) { return lstrip(rstrip(text)); }

std::string capitalize(std::string_view text) {
  std::string result;
  for (size_t at = 0, begin = 0; at < text.size(); begin = at) {
    const char32_t c = text::next_code_point(text, at);
    if (begin == 0)
      result += title_case(c);
    else if (c == 0x3A3)  // the one letter whose lower case depends on those around it
      result += is_final_sigma(text, begin, at) ? "\u03c2" : "\u03c3";
    else
      result += text::lower_case(text.substr(begin, at - begin));
  }
  return result;
}

int64_t count_words(std::string_view text) {
  int64_t words = 1;
  bool space = false;
  for (size_t at = 0; at < text.size();) {
    const int k = detail::utf8_prefix(text.substr(at));
    bool is = false;
    if (k > 0) {
      is = is_space(text::next_code_point(text, at));
    } else {
      ++at;
    }
    words += is && !space;
    space = is;
  }
  return words;
}

}  // namespace braid::models::eval
