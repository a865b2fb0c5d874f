// A drawing: shapes in the order in which they are painted. svg.h and pdf.h write it as files.
//
// Coordinates are in units (medium.h); x grows to the right, y downwards. A shape names its look, such as "line c0"
// (style.h); colors and widths are no concern of what draws.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/chart/medium.h"

namespace braid::apps {

using Points = std::vector<std::pair<double, double>>;

// Cells of a heat map as shades (heat.h), row by row.
struct Raster {
  int rows = 0, columns = 0;
  std::vector<uint8_t> shades;
};

namespace shapes {
struct Line {
  double x1, y1, x2, y2;
  std::string look;
};
struct Path {  // an open line; points that are not finite break it
  Points points;
  std::string look, dash;  // dash: lengths of lines and gaps, "7 4"
};
struct Area {
  Points outline;
  std::string look;
};
struct Circle {
  double x, y, radius;
  std::string look;
};
struct Rect {
  double x, y, width, height;
  std::string look;
};
struct Cell {
  Rect rect;
  double opacity;     // in [0, 1]
  std::string words;  // under the pointer, where there is one
};
struct Image {
  double x, y, width, height;
  Raster raster;
};
struct Text {
  double x, y;
  std::string words, look, anchor;  // anchor: start, middle or end
  double rotate;                    // degrees about (x, y)
};
struct Clip {  // what follows is cut at the rectangle, up to an Unclip
  double x, y, width, height;
};
struct Unclip {};
}  // namespace shapes

using Shape = std::variant<shapes::Line, shapes::Path, shapes::Area, shapes::Circle, shapes::Rect, shapes::Cell,
                           shapes::Image, shapes::Text, shapes::Clip, shapes::Unclip>;

class Drawing {
 public:
  // width, height: in units; title: its name for screen readers; description: what it shows or how it was made.
  Drawing(const Medium& its_medium, double its_width, double its_height, std::string its_title,
          std::string its_description);

  void line(double x1, double y1, double x2, double y2, std::string_view look);
  void path(Points points, std::string_view look, std::string_view dash = "");
  void area(Points outline, std::string_view look);
  void circle(double x, double y, double radius, std::string_view look);
  void rect(double x, double y, double wide, double tall, std::string_view look);
  void cell(double x, double y, double wide, double tall, std::string_view look, double opacity, std::string words);
  void image(double x, double y, double wide, double tall, Raster raster);
  void text(double x, double y, std::string_view words, std::string_view look, std::string_view anchor = "start",
            double rotate = 0);
  void clip(double x, double y, double wide, double tall);
  void unclip();

  Medium medium;
  double width, height;
  std::string title, description;
  std::vector<Shape> shapes;
};

// Width of words in the text of a chart: on paper that of Helvetica, on a screen, whose fonts differ, an estimate.
double text_width(std::string_view words, const Medium& medium);
// The words in lines of at most `width`, broken at blanks.
std::vector<std::string> wrapped(std::string_view words, double width, const Medium& medium);

}  // namespace braid::apps
