// Text in the fonts that every reader of PDF has: Helvetica, and Symbol for a few signs that Helvetica lacks.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace braid::apps {

// Letters of one font: bytes in WinAnsiEncoding of Helvetica or in the encoding of Symbol.
struct PdfWords {
  bool symbol = false;
  std::string bytes;
};
// UTF-8 as runs of letters. Characters that neither font has, and control characters, are written as U+ and four or
// more hexadecimal digits.
std::vector<PdfWords> pdf_words(std::string_view text);
// Width of a run, and of a text, in units of the size of the font.
double width_of(const PdfWords& words);
double helvetica_width(std::string_view text);

}  // namespace braid::apps
