#include "braid/models/data/tokenizers/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

namespace braid::models::text {

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t first = byte(at);
  const size_t begin = at;
  at += utf8_length(text[at]);
  switch (at - begin) {
    case 1:
      return first;
    case 2:
      return (first & 0x1Fu) << 6 | (byte(begin + 1) & 0x3Fu);
    case 3:
      return (first & 0x0Fu) << 12 | (byte(begin + 1) & 0x3Fu) << 6 | (byte(begin + 2) & 0x3Fu);
    default:
      return (first & 0x07u) << 18 | (byte(begin + 1) & 0x3Fu) << 12 | (byte(begin + 2) & 0x3Fu) << 6 |
             (byte(begin + 3) & 0x3Fu);
  }
}

char32_t previous_code_point(std::string_view text, size_t& at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  size_t behind = at;
  return next_code_point(text, behind);
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool contains(std::span<const CodeRange> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

// Alphabetic, a mark, a decimal digit, a connector or a joiner. Alphabetic is a letter, a letter number, a spacing mark
// or one of 130 circled and squared Latin letters.
bool is_word_character(char32_t c) {
  static constexpr CodeRange others[] = {
      {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  for (const CategoryRange& range : newer_categories()) {
    const char major = range.category[0];
    if (c >= range.first && c <= range.last &&
        (major == 'L' || major == 'M' || std::string_view(range.category) == "Nd"))
      return true;
  }
  return contains(others, c);
}

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c < 0x80)
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (c == 0x130)  // the one letter whose lower case has two code points
      out += "i\u0307";
    else
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
  return out;
}

namespace {
int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Normalises text that no character around it combines with.
void append_normal_part(std::string& out, std::string_view text, NormalForm form) {
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  int options = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool exception = compatible && contains(compatibility_exceptions(), c);
    std::array<utf8proc_int32_t, 32> parts;  // at most 18 (U+FDFA)
    int ignored = 0;
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c), parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
        static_cast<utf8proc_option_t>(options | (compatible && !exception ? UTF8PROC_COMPAT : 0)), &ignored);
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  // Canonical order: each run of marks by combining class, equal ones in the order of the text.
  for (auto begin = points.begin(); begin != points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, points.end(), [](utf8proc_int32_t c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
  auto count = static_cast<utf8proc_ssize_t>(points.size());
  if (composed) count = utf8proc_normalize_utf32(points.data(), count, static_cast<utf8proc_option_t>(options));
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(points[static_cast<size_t>(i)]));
}
}  // namespace

// Around these text is cut: nothing combines with them. utf8proc 2.8 drops U+11A7 behind a Hangul syllable, which
// stands one before the first final consonant.
static bool stands_alone(char32_t c) { return c == 0x11A7 || contains(normal_form_boundaries(), c); }

std::string normal_form(std::string_view text, NormalForm form) {
  // Every code point below U+0300 begins a part of its own: none combines with a character before it. Below `same` it
  // is also its own normal form, unless a mark follows.
  constexpr char32_t first_mark = 0x300;
  const char32_t same = form == NormalForm::nfc ? first_mark : 0x80;
  std::string out;
  out.reserve(text.size());
  size_t copied = 0, at = 0;  // text[copied, at) is unchanged so far
  while (at < text.size()) {
    const size_t begin = at;
    const char32_t c = next_code_point(text, at);
    size_t end = at;  // of the part
    const bool alone = stands_alone(c);
    while (!alone && end < text.size()) {
      size_t behind = end;
      const char32_t next = next_code_point(text, behind);
      if (next < first_mark || stands_alone(next)) break;
      end = behind;
    }
    if (c < same && end == at) continue;
    out.append(text, copied, begin - copied);
    append_normal_part(out, text.substr(begin, end - begin), form);
    copied = at = end;
  }
  out.append(text, copied, std::string_view::npos);
  return out;
}

namespace {
struct ByteAlphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, 0x144> bytes;  // by code point
  ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const char32_t c = printable ? byte : next++;
      append_utf8(characters[byte], c);
      bytes[c] = static_cast<int16_t>(byte);
    }
  }
};
const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}
}  // namespace

std::string_view byte_character(unsigned char byte) { return byte_alphabet().characters[byte]; }

void append_byte_characters(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) text += byte_character(static_cast<unsigned char>(byte));
}

int byte_of_character(char32_t c) { return c < 0x144 ? byte_alphabet().bytes[c] : -1; }

}  // namespace braid::models::text
