#include "braid/autograd/graph_svg.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(graph_svg)

namespace {
// Where the text is drawn: x and y of its middle.
std::pair<int, int> place(const std::string& chart, const std::string& text) {
  const size_t end = chart.find(">" + text + "</text>");
  BOOST_REQUIRE_MESSAGE(end != std::string::npos, "no text " << text << " in\n" << chart);
  std::istringstream in(chart.substr(chart.rfind("<text", end)));
  std::string word;
  char c;
  int x, y;
  in >> word >> c >> c >> c >> x >> c >> c >> c >> c >> y;  // <text x="1" y="2"
  return {x, y};
}
size_t times(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
}  // namespace

BOOST_AUTO_TEST_CASE(tensors_flow_from_left_to_right) {
  Tensor w = full({2, 3}, 1), b = full({2}, 1), x = full({4, 3}, 1);
  require_grad(w);
  require_grad(b);
  const std::string chart = svg(sum(mul(linear(x, w, b), b)), {{"w", w}, {"a < b", b}});
  BOOST_TEST(chart.find("<svg class=\"graph\" xmlns=") == 0u);
  const auto [w_x, w_y] = place(chart, "w");
  const auto [b_x, b_y] = place(chart, "a &lt; b");
  const int linear_x = place(chart, "linear").first, mul_x = place(chart, "mul").first;
  BOOST_TEST(w_x < linear_x);
  BOOST_TEST(std::abs(w_x - b_x) < 40);  // in one column, in two rows
  BOOST_TEST(w_y != b_y);
  BOOST_TEST(linear_x < mul_x);
  BOOST_TEST(mul_x < place(chart, "sum").first);
  BOOST_TEST(times(chart, "class=\"leaf\"") == 2u);
  BOOST_TEST(times(chart, "class=\"op\"") == 3u);
  BOOST_TEST(times(chart, "marker-end") == 5u);
  BOOST_TEST(times(chart, ">(2, 3)<") == 1u);
  BOOST_TEST(times(chart, " C") == 6u);  // the arrow from b to mul passes the column of linear
}

// An arrow that passes below all boxes lies inside too.
BOOST_AUTO_TEST_CASE(nothing_is_cut) {
  Tensor x = full({2}, 1);
  require_grad(x);
  const std::string chart = svg(add(exp(exp(exp(x))), x));
  BOOST_TEST(times(chart, ">(2)<") == 4u);  // x once, though two ops use it
  double height = 0, lowest = 0;
  std::istringstream(chart.substr(chart.find("height=\"") + 8)) >> height;
  for (size_t at = chart.find("<path d=\""); at != std::string::npos; at = chart.find("<path d=\"", at + 1)) {
    std::istringstream path(chart.substr(at + 9, chart.find('"', at + 9) - at - 9));
    double x_of, y_of;
    for (std::string word; path >> word;) {
      if (word[0] == 'H') continue;
      std::istringstream(word[0] == 'M' || word[0] == 'C' ? word.substr(1) : word) >> x_of;
      if (path >> y_of) lowest = std::max(lowest, y_of);
    }
  }
  BOOST_TEST(lowest > 0);
  BOOST_TEST(lowest < height);
}

BOOST_AUTO_TEST_CASE(it_is_written_to_a_file) {
  TempFolder folder;
  Tensor x = full({1}, 1);
  require_grad(x);
  write_svg(exp(x), folder / "graph.svg");
  std::ostringstream text;
  text << std::ifstream(folder / "graph.svg").rdbuf();
  BOOST_TEST(text.str() == svg(exp(x)));
  BOOST_TEST(throws_with([&] { svg(full({1}, 1)); }, "[svg] the tensor has no history"));
}

BOOST_AUTO_TEST_SUITE_END()
