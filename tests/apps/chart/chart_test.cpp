// Charts on screens and on paper: sizes, legends, what is clipped.
#include "apps/chart/chart.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "apps/chart/heat.h"
#include "apps/chart/style.h"
#include "apps/chart/svg.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(chart)

namespace {

constexpr Medium kScreen, kColumn{.inches = 3.25}, kPage{.inches = 6.75};

std::vector<shapes::Text> texts(const Drawing& drawing) {
  std::vector<shapes::Text> found;
  for (const Shape& shape : drawing.shapes)
    if (const auto* text = std::get_if<shapes::Text>(&shape)) found.push_back(*text);
  return found;
}

bool says(const Drawing& drawing, const std::string& words) {
  for (const shapes::Text& text : texts(drawing))
    if (text.words == words) return true;
  return false;
}

bool mentions(const Drawing& drawing, const std::string& words) {
  for (const shapes::Text& text : texts(drawing))
    if (text.words.find(words) != std::string::npos) return true;
  return false;
}

// All text lies inside of the drawing.
void check_text_inside(const Drawing& drawing) {
  for (const shapes::Text& t : texts(drawing)) {
    const double width = text_width(t.words, drawing.medium), before = t.anchor == "end"      ? width
                                                                       : t.anchor == "middle" ? width / 2
                                                                                              : 0;
    const bool upright = t.rotate == 0;
    const double low = upright ? t.x - before : t.y - (width - before), high = low + width;
    BOOST_TEST(low >= -1, t.words << " begins at " << low);
    BOOST_TEST(high <= (upright ? drawing.width : drawing.height) + 1, t.words << " ends at " << high);
  }
}

HeatPanel panel(const std::string& title, std::vector<double> values, int rows) {
  const int columns = static_cast<int>(values.size()) / rows;
  std::vector<std::string> names;
  for (int k = 0; k < columns; ++k) names.push_back("token" + std::to_string(k));
  return {.title = title,
          .rows = rows,
          .columns = columns,
          .values = std::move(values),
          .row_names = {names.begin(), names.begin() + std::min(rows, columns)},
          .column_names = names};
}

Line line(const std::string& name, int hue, std::vector<double> y) {
  Line result{.name = name, .x = {}, .y = std::move(y), .hue = hue};
  for (size_t i = 0; i < result.y.size(); ++i) result.x.push_back(static_cast<double>(i));
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(quantiles_of_sizes) {
  const std::vector<double> sizes = {5, 1, 4, 2, 3};
  BOOST_TEST(size_quantile(sizes, 1) == 5);
  BOOST_TEST(size_quantile(sizes, 0.8) == 4);
  BOOST_TEST(size_quantile(sizes, 0.81) == 5);
  BOOST_TEST(size_quantile(sizes, 0) == 1);
  BOOST_TEST(size_quantile({}, 0.5) == 0);
}

BOOST_AUTO_TEST_CASE(widths_titles_and_panels_beside_one_another) {
  const std::vector<LinePanel> panels(4, {.title = "loss", .x_name = "step", .lines = {line("a", 0, {3, 2, 1})}});
  const Chart lines = line_chart({"The title", "The caption."}, panels, 4);
  const Drawing screen = lines(kScreen), column = lines(kColumn), page = lines(kPage);
  BOOST_TEST(screen.width == 760);
  BOOST_TEST(column.width == 351);  // 234 pt
  BOOST_TEST(page.width == 729);
  BOOST_TEST(says(screen, "The title"));
  BOOST_TEST(says(screen, "The caption."));
  for (const Drawing* paper : {&column, &page}) {
    BOOST_TEST(!says(*paper, "The title"));
    BOOST_TEST(!says(*paper, "The caption."));
    BOOST_TEST(paper->title == "The title");
    BOOST_TEST(paper->description == "The caption.");
  }
  BOOST_TEST(column.height > 1.8 * page.height);  // two panels beside one another, and four
  for (const Drawing* drawing : {&screen, &column, &page}) check_text_inside(*drawing);
}

BOOST_AUTO_TEST_CASE(a_name_has_one_color) {
  const std::vector<LinePanel> panels = {
      {.title = "one", .lines = {line("before", 0, {1, 2}), line("after", 1, {2, 1})}},
      {.title = "two", .lines = {line("before", 0, {3, 2}), line("other", 2, {0, 1})}}};
  const Drawing drawing = line_chart({"t"}, panels, 2)(kColumn);
  int names = 0;
  for (const shapes::Text& text : texts(drawing)) names += text.words == "before";
  BOOST_TEST(names == 1);
  BOOST_TEST(says(drawing, "other"));
}

BOOST_AUTO_TEST_CASE(a_band_and_a_range_without_the_beginning) {
  Line steep = line("a", 3, {});
  for (int i = 0; i < 100; ++i) {
    steep.x.push_back(i), steep.y.push_back(i < 4 ? 100 : 2);
    steep.low.push_back(steep.y.back() - 1), steep.high.push_back(steep.y.back() + 1);
  }
  steep.band = true;
  const Drawing drawing = line_chart({"t"}, {{.title = "loss", .lines = {steep}, .skips_beginning = true}}, 1)(kScreen);
  size_t bands = 0;
  for (const Shape& shape : drawing.shapes)
    if (const auto* area = std::get_if<shapes::Area>(&shape))
      bands += area->look == "band c3" && area->outline.size() == 200;
  BOOST_TEST(bands == 1u);
  BOOST_TEST(says(drawing, "2.0"));
  BOOST_TEST(!says(drawing, "100"));
}

BOOST_AUTO_TEST_CASE(heat_maps_say_what_they_clip) {
  std::vector<double> values(100, 1.0);
  values[0] = -8, values[1] = NAN;
  const auto drawn = [&](const HeatLayout& layout, const Medium& medium) {
    return heat_chart({"t"}, {panel("map", values, 10)}, layout)(medium);
  };
  const Drawing all = drawn({.unit = "weight"}, kScreen);
  BOOST_TEST(!mentions(all, "clipped"));
  for (const char* label : {"weight", "8.00", "-8.00", "2.00", "0"})
    BOOST_TEST(says(all, label), label);  // 8 / 4 half way
  const Drawing most = drawn({.quantile = 0.95}, kColumn);
  BOOST_TEST(says(most, "clipped at the 95 % quantile of sizes; the largest is 8.00"));
  BOOST_TEST(says(most, "1.00"));
  BOOST_TEST(says(drawn({.max = 2}, kScreen), "clipped; the largest is 8.00"));
  check_text_inside(most);
}

BOOST_AUTO_TEST_CASE(axes_of_maps_have_names_and_labels) {
  const HeatLayout layout{
      .across = 3, .shared_rows = true, .row_axis = "query", .column_axis = "key", .unit = "weight"};
  std::vector<HeatPanel> panels(3, panel("composed weight", std::vector<double>(16, 0.5), 4));
  for (const Medium& medium : {kScreen, kColumn, kPage}) {
    const Drawing drawing = heat_chart({"t"}, panels, layout)(medium);
    for (const char* words : {"query", "key", "token0", "token3"}) BOOST_TEST(says(drawing, words), words);
    int rows = 0;  // shared by the three panels
    for (const shapes::Text& text : texts(drawing)) rows += text.words == "token0" && text.rotate == 0;
    BOOST_TEST(rows == 1);
    check_text_inside(drawing);
  }
}

// Many cells are an image; its color bar has the colors of the image.
BOOST_AUTO_TEST_CASE(large_maps_are_images) {
  const auto images = [](int side) {
    HeatPanel map{.title = "m", .rows = side, .columns = side};
    map.values.assign(static_cast<size_t>(side * side), 1);
    int found = 0;
    for (const Shape& shape : heat_chart({"t"}, {map}, {})(kColumn).shapes)
      found += std::holds_alternative<shapes::Image>(shape);
    return found;
  };
  BOOST_TEST(images(32) == 0);
  BOOST_TEST(images(33) == 2);
}

BOOST_AUTO_TEST_CASE(shades) {
  const Raster raster = heat_raster({0, 4, -4, 1, -1, 100, NAN}, 1, 7, 4);
  const std::vector<uint8_t> want = {0, 127, 254, 64, 191, 127, kMaskedShade};
  BOOST_TEST(raster.shades == want);
  BOOST_TEST(shade_color(127, {0x123456, 0}) == 0x123456u);
  BOOST_TEST(shade_color(254, {0, 0x654321}) == 0x654321u);
  BOOST_TEST(shade_opacity(0) == 0);
  BOOST_TEST(shade_opacity(254) == 1);
  BOOST_TEST(on_white(0x123456, 0) == 0xffffffu);
  BOOST_TEST(on_white(0x123456, 1) == 0x123456u);
  BOOST_TEST(on_white(0x000080, 0.5) == 0x8080c0u);
}

BOOST_AUTO_TEST_CASE(intervals_with_and_without_zero) {
  const std::vector<Bar> bars = {{"a", 2.5, 2.4, 2.6}, {"b", 2.7, 2.7, 2.7}};
  const Drawing zero = interval_chart({"t", "95 %, n = 3"}, "nats", bars)(kScreen),
                near = interval_chart({"t"}, "nats", bars, false)(kColumn);
  BOOST_TEST(says(zero, "0"));
  BOOST_TEST(says(zero, "95 %, n = 3"));
  BOOST_TEST(!says(near, "0"));
  check_text_inside(zero), check_text_inside(near);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string open = svg_of(interval_chart({"t"}, "nats", {{"a", 1, 0.5, infinity}})(kScreen));
  BOOST_TEST(open.find("inf") == std::string::npos);
  BOOST_TEST(open.find("nan") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(captions_are_broken_into_lines) {
  const auto lines = wrapped("one two three", text_width("one two", kScreen), kScreen);
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(lines[0] == "one two");
  BOOST_TEST(lines[1] == "three");
  BOOST_TEST(text_width("\u00e4\u00f6", kScreen) == text_width("ao", kScreen));
}

BOOST_AUTO_TEST_SUITE_END()
