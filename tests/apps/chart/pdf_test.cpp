// The structure of the PDF files, and that they draw what the drawing says. Readers forgive much; the tests do not.
#include "apps/chart/pdf.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "apps/chart/heat.h"
#include "apps/chart/helvetica.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(pdf)

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Drawing example(const Medium& medium) {
  Drawing d(medium, 351, 120, "A figure", "");
  d.line(10, 10, 90.126, 10, "grid");
  d.path({{0, 1}, {1, 2}, {2, NAN}, {3, 4}, {NAN, 1}}, "line c0", "7 4");
  d.area({{1, 1}, {5, 1}, {5, 5}}, "band c1");
  d.clip(1, 2, 3, 4);
  d.circle(50, 60, 2.5, "dot c2");
  d.unclip();
  d.cell(5, 5, 10, 10, "less", 0.5, "words that paper has not");
  d.image(200, 20, 60, 40, heat_raster({0, 1, -1, NAN, 0.25, -0.25}, 2, 3, 1));
  d.text(351, 100, "right (\\)", "small", "end");
  d.text(20, 100, "up", "small", "start", -90);
  return d;
}

// The file by its cross-reference table: every offset is that of its object, every stream has its length.
void check_structure(const std::string& file) {
  BOOST_TEST(file.starts_with("%PDF-1.4\n%"));
  BOOST_TEST(file.ends_with("%%EOF\n"));
  const size_t start = file.rfind("startxref\n") + 10;
  const auto xref = static_cast<size_t>(std::stoul(file.substr(start)));
  BOOST_REQUIRE(file.compare(xref, 7, "xref\n0 ") == 0);
  const size_t objects = std::stoul(file.substr(xref + 7)), entries = file.find('\n', xref + 7) + 1;
  BOOST_TEST(count(file, " 0 obj\n") == objects - 1);
  BOOST_TEST(file.substr(entries, 20) == "0000000000 65535 f \n");
  for (size_t k = 1; k < objects; ++k) {
    const std::string entry = file.substr(entries + 20 * k, 20);
    BOOST_TEST(entry.substr(10) == " 00000 n \n");
    const size_t at = std::stoul(entry.substr(0, 10));
    BOOST_TEST(file.compare(at, std::to_string(k).size() + 7, std::to_string(k) + " 0 obj\n") == 0, k);
  }
  BOOST_TEST(file.compare(entries + 20 * objects, 8, "trailer\n") == 0);
  BOOST_TEST(has(file, "/Size " + std::to_string(objects) + " "));
  for (size_t at = file.find("stream\n"); at != std::string::npos; at = file.find("\nstream\n", at + 1)) {
    if (file[at] == '\n') ++at;
    const size_t length = file.rfind("/Length ", at) + 8, size = std::stoul(file.substr(length));
    BOOST_TEST(file.compare(at + 7 + size, 11, "\nendstream\n") == 0);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(offsets_lengths_and_the_size_of_the_page) {
  const std::string file = pdf_of(example({.inches = 3.25}));
  check_structure(file);
  BOOST_TEST(has(file, "/MediaBox [0 0 234 80]"));  // 3.25 inches
  BOOST_TEST(has(pdf_of({{.inches = 6.75}, 729, 300, "", ""}), "/MediaBox [0 0 486 200]"));
  BOOST_TEST(has(pdf_of({{}, 100, 40, "", ""}), "/MediaBox [0 0 75 30]"));  // pixels of 1/96 inch
  check_structure(pdf_of({{}, 100, 40, "", ""}));
}

BOOST_AUTO_TEST_CASE(the_same_drawing_gives_the_same_bytes) {
  BOOST_TEST((pdf_of(example({.inches = 3.25})) == pdf_of(example({.inches = 3.25}))));
  BOOST_TEST(!has(pdf_of(example({})), "Date"));
}

BOOST_AUTO_TEST_CASE(shapes_are_those_of_the_drawing) {
  const std::string file = pdf_of(example({.inches = 3.25}));
  BOOST_TEST(has(file, "0.666667 0 0 -0.666667 0 80.000000 cm"));  // y downwards
  BOOST_TEST(has(file, "10 10 m 90.13 10 l\n"));
  BOOST_TEST(has(file, "[7 4] 0 d 0 1 m\n1 2 l\n3 4 m\n3 4 l\nS"));  // a gap, and a lone point
  BOOST_TEST(has(file, "/O20 gs"));
  BOOST_TEST(has(file, "/O20 << /CA 0.2 /ca 0.2 >>"));
  BOOST_TEST(has(file, "q 1 2 3 4 re W n\n"));
  BOOST_TEST(count(file, "q ") == count(file, "Q\n"));
  const Rgb half = 0xe1ac86;  // #c2590c and white, half and half
  char color[40];
  std::snprintf(color, sizeof color, "%.3f %.3f %.3f rg 5 5 10 10 re f", (half >> 16) / 255.0,
                (half >> 8 & 255) / 255.0, (half & 255) / 255.0);
  BOOST_TEST(has(file, color), color);
  BOOST_TEST(has(file, "/Width 3 /Height 2 /BitsPerComponent 8"));
  BOOST_TEST(has(file, "60 0 0 -40 200 60 cm /I0 Do"));
  BOOST_TEST(has(file, std::string("\nstream\n\x00\x7f\xfe\xff\x40\xbf", 14)));  // 0, 1, -1, masked, and half shades
  BOOST_TEST(!has(file, "nan"));
}

BOOST_AUTO_TEST_CASE(text_is_placed_by_the_widths_of_helvetica) {
  const std::string file = pdf_of(example({.inches = 3.25}));
  // "right (\)": 333 222 556 556 278 278 333 278 333 thousandths of 12
  BOOST_TEST(std::fabs(helvetica_width("right (\\)") - 3.167) < 1e-12);
  BOOST_TEST(has(file, "1 0 0 -1 313 100 Tm /F0 12 Tf <726967687420285C29> Tj"));
  BOOST_TEST(has(file, "0 -1 -1 0 20 100 Tm"));  // upwards
  Drawing big({.inches = 3}, 324, 1e6, "", "");
  big.text(1e5, 123456.789, "x", "panel");
  BOOST_TEST(has(pdf_of(big), "100000 123456.79 Tm /F1"));  // bold, without exponents
}

BOOST_AUTO_TEST_CASE(letters_of_the_two_fonts_and_others) {
  const auto runs = pdf_words("\u00b7the\u21b5 \u2212\u00e4 \u4e2d\x01");
  BOOST_REQUIRE(runs.size() == 5u);
  BOOST_TEST(runs[0].bytes == "\xb7the");
  BOOST_TEST(runs[1].symbol);
  BOOST_TEST(runs[1].bytes == "\xbf");
  BOOST_TEST(runs[3].bytes == "-");  // minus in Symbol
  BOOST_TEST(runs[4].bytes == "\xe4 U+4E2DU+0001");
  BOOST_TEST(width_of(runs[1]) == 0.658);
  BOOST_TEST(helvetica_width("") == 0);
  BOOST_TEST(pdf_words("\xff")[0].bytes == "U+FFFD");
}

BOOST_AUTO_TEST_SUITE_END()
