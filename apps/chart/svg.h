// A small writer of SVG: elements, and charts with axes. Text stays text; colours come from a style sheet with
// a light and a dark variant, chosen by the viewer.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::apps {

using Points = std::vector<std::pair<double, double>>;

class Svg {
 public:
  // title: name of the chart for screen readers; description: how it was made.
  Svg(double width, double height, const std::string& title, const std::string& description);

  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  // An open line through the points, in chart coordinates. Points that are not finite break it.
  void path(const Points& points, std::string_view css_class, std::string_view dash = "");
  // The area inside the points.
  void area(const Points& points, std::string_view css_class);
  void circle(double x, double y, double radius, std::string_view css_class);
  void rect(double x, double y, double width, double height, std::string_view css_class);
  // A cell of a heat map: css_class "more" or "less", opacity in [0, 1]; `words` appear under the pointer.
  void cell(double x, double y, double width, double height, std::string_view css_class, double opacity,
            std::string_view words);
  // A PNG, its pixels as they are.
  void image(double x, double y, double width, double height, std::string_view png);
  // anchor: start, middle or end; rotate: degrees about (x, y).
  void text(double x, double y, std::string_view words, std::string_view css_class, std::string_view anchor = "start",
            double rotate = 0);
  // Everything between clip() and unclip() is cut at the rectangle.
  void clip(double x, double y, double width, double height);
  void unclip();
  std::string finish();  // the document

 private:
  std::string body_;
  int clips_ = 0;
};

// Bytes as text of A-Z a-z 0-9 + / (RFC 4648), for data: URLs.
std::string base64(std::string_view bytes);

// Six hues that colour-blind people tell apart, then the same hues dashed. css classes "line c0".."line c5".
inline constexpr int series_hues = 6;
std::string series_class(std::string_view kind, int index);  // ("line", 7) -> "line c1"
std::string series_dash(int index);                          // "" for 0..5, then "7 3", "2 3", "9 3 2 3"

struct Axis {
  double min = 0, max = 1;
  bool log = false;
  bool whole = false;        // only integers make sense on it
  double low = 0, high = 0;  // chart coordinates of min and max
  double at(double value) const;
};

struct Tick {
  double value;
  std::string label;
};
// About `count` round positions inside [axis.min, axis.max] with labels that tell them apart.
std::vector<Tick> ticks(const Axis& axis, int count);

}  // namespace braid::apps
