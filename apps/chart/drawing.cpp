#include "apps/chart/drawing.h"

#include "apps/chart/helvetica.h"
#include "apps/cli/text.h"

namespace braid::apps {

Drawing::Drawing(const Medium& its_medium, double its_width, double its_height, std::string its_title,
                 std::string its_description)
    : medium(its_medium),
      width(its_width),
      height(its_height),
      title(std::move(its_title)),
      description(std::move(its_description)) {
  rect(0, 0, width, height, "paper");
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view look) {
  shapes.push_back(shapes::Line{x1, y1, x2, y2, std::string(look)});
}
void Drawing::path(Points points, std::string_view look, std::string_view dash) {
  shapes.push_back(shapes::Path{std::move(points), std::string(look), std::string(dash)});
}
void Drawing::area(Points outline, std::string_view look) {
  if (!outline.empty()) shapes.push_back(shapes::Area{std::move(outline), std::string(look)});
}
void Drawing::circle(double x, double y, double radius, std::string_view look) {
  shapes.push_back(shapes::Circle{x, y, radius, std::string(look)});
}
void Drawing::rect(double x, double y, double wide, double tall, std::string_view look) {
  shapes.push_back(shapes::Rect{x, y, wide, tall, std::string(look)});
}
void Drawing::cell(double x, double y, double wide, double tall, std::string_view look, double opacity,
                   std::string words) {
  shapes.push_back(shapes::Cell{{x, y, wide, tall, std::string(look)}, opacity, std::move(words)});
}
void Drawing::image(double x, double y, double wide, double tall, Raster raster) {
  shapes.push_back(shapes::Image{x, y, wide, tall, std::move(raster)});
}
void Drawing::text(double x, double y, std::string_view words, std::string_view look, std::string_view anchor,
                   double rotate) {
  shapes.push_back(shapes::Text{x, y, std::string(words), std::string(look), std::string(anchor), rotate});
}
void Drawing::clip(double x, double y, double wide, double tall) { shapes.push_back(shapes::Clip{x, y, wide, tall}); }
void Drawing::unclip() { shapes.push_back(shapes::Unclip{}); }

double text_width(std::string_view words, const Medium& medium) {
  constexpr double kSize = 12, kWide = 6.4;  // of a letter, on a screen
  if (medium.paper()) return kSize * helvetica_width(words);
  double letters = 0;
  for (const char c : words) letters += (c & 0xC0) != 0x80;
  return kWide * letters;
}

std::vector<std::string> wrapped(std::string_view words, double width, const Medium& medium) {
  std::vector<std::string> lines;
  for (const std::string& word : split(std::string(words), ' ')) {
    if (word.empty()) continue;
    if (!lines.empty() && text_width(lines.back() + " " + word, medium) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

}  // namespace braid::apps
