#include "apps/chart/helvetica.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

#include "apps/cli/text.h"

namespace braid::apps {
namespace {

// Thousandths of the size, of the bytes from 32 on in WinAnsiEncoding; 0: no letter.
constexpr uint16_t widths[] = {
    278,  278, 355, 556,  556, 889, 667, 191, 333, 333, 389, 584,  278, 333, 278,  278, 556,  556,  556, 556,  556,
    556,  556, 556, 556,  556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722,  722, 667,  611,  778, 722,  278,
    500,  667, 556, 833,  722, 778, 667, 778, 722, 667, 611, 722,  667, 944, 667,  667, 611,  278,  278, 278,  469,
    556,  333, 556, 556,  500, 556, 556, 278, 556, 556, 222, 222,  500, 222, 833,  556, 556,  556,  556, 333,  500,
    278,  556, 500, 722,  500, 500, 500, 334, 260, 334, 584, 0,    556, 0,   222,  556, 333,  1000, 556, 556,  333,
    1000, 667, 333, 1000, 0,   611, 0,   0,   222, 222, 333, 333,  350, 556, 1000, 333, 1000, 500,  333, 944,  0,
    500,  667, 278, 333,  556, 556, 556, 556, 260, 556, 333, 737,  370, 556, 584,  333, 737,  333,  400, 584,  333,
    333,  333, 556, 537,  278, 333, 333, 365, 556, 834, 834, 834,  611, 667, 667,  667, 667,  667,  667, 1000, 722,
    667,  667, 667, 667,  278, 278, 278, 278, 722, 722, 778, 778,  778, 778, 778,  584, 778,  722,  722, 722,  722,
    667,  667, 611, 556,  556, 556, 556, 556, 556, 889, 500, 556,  556, 556, 556,  278, 278,  278,  278, 556,  556,
    556,  556, 556, 556,  556, 584, 611, 556, 556, 556, 556, 500,  556, 500};
static_assert(std::size(widths) == 256 - 32);

struct Sign {
  uint32_t code;  // of Unicode
  bool symbol;
  uint8_t byte;
  uint16_t width = 0;  // of Symbol
};
constexpr Sign signs[] = {
    {0x20ac, false, 0x80},     {0x2026, false, 0x85},     {0x2018, false, 0x91},     {0x2019, false, 0x92},
    {0x201c, false, 0x93},     {0x201d, false, 0x94},     {0x2022, false, 0x95},     {0x2013, false, 0x96},
    {0x2014, false, 0x97},     {0x2192, true, 0xae, 987}, {0x2190, true, 0xac, 987}, {0x21b5, true, 0xbf, 658},
    {0x2212, true, 0x2d, 549}, {0x2264, true, 0xa3, 549}, {0x2265, true, 0xb3, 549}, {0x221e, true, 0xa5, 713}};

// The character at the beginning of valid UTF-8, of `size` bytes.
uint32_t character(std::string_view text, int size) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[size_t(i)])); };
  if (size == 1) return byte(0);
  uint32_t code = byte(0) & (0xffu >> (size + 1));
  for (int i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

}  // namespace

std::vector<PdfWords> pdf_words(std::string_view text) {
  const std::string valid = detail::show_bidi_controls(detail::replace_invalid_utf8(text));
  std::vector<PdfWords> runs;
  const auto add = [&](bool symbol, std::string_view bytes) {
    if (runs.empty() || runs.back().symbol != symbol) runs.push_back({.symbol = symbol, .bytes = ""});
    runs.back().bytes += bytes;
  };
  for (std::string_view rest = valid; !rest.empty();) {
    const int size = std::max(1, detail::utf8_prefix(rest));
    const uint32_t code = character(rest, size);
    rest.remove_prefix(static_cast<size_t>(size));
    const bool same = (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code <= 0xff);
    const auto* sign = std::ranges::find(signs, code, &Sign::code);
    char name[16];
    if (same)
      add(false, std::string(1, static_cast<char>(code)));
    else if (sign != std::end(signs))
      add(sign->symbol, std::string(1, static_cast<char>(sign->byte)));
    else
      add(false, {name, static_cast<size_t>(std::snprintf(name, sizeof name, "U+%04X", code))});
  }
  return runs;
}

double width_of(const PdfWords& words) {
  double width = 0;
  for (const char c : words.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (words.symbol)
      width += std::ranges::find_if(signs, [&](const Sign& s) { return s.symbol && s.byte == byte; })->width;
    else
      width += widths[byte - 32];
  }
  return width / 1000;
}

double helvetica_width(std::string_view text) {
  double width = 0;
  for (const PdfWords& words : pdf_words(text)) width += width_of(words);
  return width;
}

}  // namespace braid::apps
