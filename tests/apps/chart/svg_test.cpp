#include "apps/chart/svg.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "apps/chart/style.h"
#include "braid/tensor/error.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(svg)

static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

BOOST_AUTO_TEST_CASE(words_are_escaped) {
  Drawing chart({}, 100, 50, "a < b", "\"quoted\" & more");
  chart.text(1, 2, "<script>", "small");
  const std::string text = svg_of(chart);
  BOOST_TEST(has(text, "<title>a &lt; b</title>"));
  BOOST_TEST(has(text, "<desc>&quot;quoted&quot; &amp; more</desc>"));
  BOOST_TEST(!has(text, "<script>"));
  const std::string odd = svg_of({{}, 100, 50, "bad\xff\x01 \xed\xa0\x80", "ok \xc3\xa4"});
  BOOST_TEST(has(odd, "<title>bad\uFFFD? \uFFFD"));
  BOOST_TEST(has(odd, "<desc>ok \u00e4</desc>"));
  BOOST_TEST(has(svg_of({{}, 9, 9, "a\u202Eb\u2069", ""}), "<title>a\\u202eb\\u2069</title>"));
  BOOST_TEST(has(svg_of({{}, 9, 9, "a\uFFFE\uFFFF\uFFFDb", ""}), "<title>a??\uFFFDb</title>"));  // no XML
  BOOST_TEST(text.ends_with("</svg>\n"));
}

BOOST_AUTO_TEST_CASE(gaps_break_lines_and_lone_points_show) {
  Drawing chart({}, 100, 50, "", "");
  chart.path({{0, 1}, {1, 2.126}, {2, NAN}, {3, 4}, {NAN, 1}}, "line");
  BOOST_TEST(has(svg_of(chart), "d=\"M0 1L1 2.13M3 4h0\""));
  Drawing empty({}, 100, 50, "", "");
  empty.path({{NAN, NAN}}, "line");
  BOOST_TEST(!has(svg_of(empty), "<path"));
}

BOOST_AUTO_TEST_CASE(series_repeat_hues_with_other_dashes) {
  BOOST_TEST(series_look("line", 7) == "line c1");
  BOOST_TEST(series_dash(1) == "");
  BOOST_TEST(series_dash(7) != series_dash(1));
  BOOST_TEST(series_dash(13) != series_dash(7));
}

// A screen has pixels and colors for dark pages, paper points and one size of text.
BOOST_AUTO_TEST_CASE(a_column_of_paper) {
  const std::string screen = svg_of({{}, 760, 100, "", ""}), paper = svg_of({{.inches = 3.25}, 351, 100, "", ""});
  BOOST_TEST(has(screen, "width=\"760\" height=\"100\""));
  BOOST_TEST(has(screen, "prefers-color-scheme: dark"));
  BOOST_TEST(has(paper, "width=\"234pt\" height=\"66.67pt\" viewBox=\"0 0 351 100\""));
  BOOST_TEST(!has(paper, "prefers-color-scheme"));
  BOOST_TEST(has(screen, ".small { font-size: 11px"));
  BOOST_TEST(!has(paper, "font-size: 11px"));
  BOOST_TEST(has(paper, "font-size: 12px"));  // 8 pt
}

BOOST_AUTO_TEST_CASE(style_sheet_and_looks_agree) {
  const std::string css = style_sheet({.inches = 3});
  for (int i = 0; i < series_hues; ++i) {
    const Look line = look_of(series_look("line", i)), band = look_of(series_look("band", i));
    BOOST_TEST(has(css, braid::str(".c", i, " { stroke: ", hex(*line.stroke))));
    BOOST_TEST(!line.fill.has_value());
    BOOST_TEST(*band.fill == *line.stroke);
    BOOST_TEST(!band.stroke.has_value());
    BOOST_TEST(has(css, braid::str(".band.c", i, " { fill: ", hex(*band.fill))));
  }
  BOOST_TEST(look_of("line c0").width == 1.8);
  BOOST_TEST(look_of("faint c0").opacity == 0.28);
}

BOOST_AUTO_TEST_SUITE_END()
