#include "apps/chart/svg.h"

#include <cmath>

#include "apps/chart/png.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

// Names come from the file system, which allows any byte; XML allows valid UTF-8 without most control characters.
std::string escape(std::string_view text) {
  std::string shown = detail::show_bidi_controls(detail::replace_invalid_utf8(text)), result;
  for (const char* no_xml : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})  // U+FFFE, U+FFFF
    for (size_t at; (at = shown.find(no_xml)) != std::string::npos;) shown.replace(at, 3, "?");
  for (const char c : shown) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n')
      result += '?';
    else if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

// Hundredths of a unit are enough, and shorter files for it. + 0.0 turns -0 into 0.
std::string number(double value) { return shortest(std::round(value * 100) / 100 + 0.0); }

std::string attribute(std::string_view name, std::string_view value) {
  std::string text(1, ' ');
  return text.append(name).append("=\"").append(escape(value)).append("\"");
}
std::string attribute(std::string_view name, double value) { return attribute(name, number(value)); }

// The shapes as elements, one by one.
class Elements {
 public:
  explicit Elements(const Medium& medium) : colors_(heat_colors(medium)) {}

  void operator()(const shapes::Line& s) {
    body_ += "<line" + attribute("class", s.look) + attribute("x1", s.x1) + attribute("y1", s.y1) +
             attribute("x2", s.x2) + attribute("y2", s.y2) + "/>\n";
  }
  void operator()(const shapes::Path& s) {
    std::string d;
    int run = 0;  // points since the last gap
    const auto lift_pen = [&] {
      if (run == 1) d += "h0";  // a lone point shows as a dot
      run = 0;
    };
    for (const auto& [x, y] : s.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) {
        lift_pen();
        continue;
      }
      d.append(1, run++ > 0 ? 'L' : 'M').append(number(x)).append(1, ' ').append(number(y));
    }
    lift_pen();
    if (d.empty()) return;
    body_ += "<path" + attribute("class", s.look) + (s.dash.empty() ? "" : attribute("stroke-dasharray", s.dash)) +
             attribute("d", d) + "/>\n";
  }
  void operator()(const shapes::Area& s) {
    std::string d;
    for (const auto& [x, y] : s.outline)
      d.append(1, d.empty() ? 'M' : 'L').append(number(x)).append(1, ' ').append(number(y));
    body_ += "<path" + attribute("class", s.look) + attribute("d", d + "Z") + "/>\n";
  }
  void operator()(const shapes::Circle& s) {
    body_ += "<circle" + attribute("class", s.look) + attribute("cx", s.x) + attribute("cy", s.y) +
             attribute("r", s.radius) + "/>\n";
  }
  void operator()(const shapes::Rect& s) { body_ += rect(s) + "/>\n"; }
  void operator()(const shapes::Cell& s) {
    body_ += rect(s.rect) + attribute("fill-opacity", s.opacity) + "><title>" + escape(s.words) + "</title></rect>\n";
  }
  void operator()(const shapes::Image& s) {
    body_ += "<image style=\"image-rendering:pixelated\"" + attribute("x", s.x) + attribute("y", s.y) +
             attribute("width", s.width) + attribute("height", s.height) + " preserveAspectRatio=\"none\" href=\"" +
             "data:image/png;base64," + base64(heat_png(s.raster, colors_)) + "\"/>\n";
  }
  void operator()(const shapes::Text& s) {
    body_ += "<text" + attribute("class", s.look) + attribute("x", s.x) + attribute("y", s.y);
    if (s.anchor != "start") body_ += attribute("text-anchor", s.anchor);
    if (s.rotate != 0)
      body_ += attribute("transform", "rotate(" + number(s.rotate) + " " + number(s.x) + " " + number(s.y) + ")");
    body_.append(1, '>').append(escape(s.words)).append("</text>\n");
  }
  void operator()(const shapes::Clip& s) {
    const std::string id = str("clip", clips_++);
    body_ += "<clipPath" + attribute("id", id) + ">" + rect({s.x, s.y, s.width, s.height, ""}) + "/>\n</clipPath>\n<g" +
             attribute("clip-path", "url(#" + id + ")") + ">\n";
  }
  void operator()(const shapes::Unclip&) { body_ += "</g>\n"; }

  const std::string& text() const { return body_; }

 private:
  static std::string rect(const shapes::Rect& s) {
    return "<rect" + attribute("class", s.look) + attribute("x", s.x) + attribute("y", s.y) +
           attribute("width", s.width) + attribute("height", s.height);
  }

  HeatColors colors_;
  std::string body_;
  int clips_ = 0;
};

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : letters[group >> (18 - 6 * k) & 63];
  }
  return text;
}

std::string svg_of(const Drawing& drawing) {
  const auto side = [&](double units) {
    return drawing.medium.paper() ? number(units * kPaperPoints) + "pt" : number(units);
  };
  Elements elements(drawing.medium);
  for (const Shape& shape : drawing.shapes) std::visit(elements, shape);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" + attribute("width", side(drawing.width)) +
         attribute("height", side(drawing.height)) +
         attribute("viewBox", "0 0 " + number(drawing.width) + " " + number(drawing.height)) + ">\n<title>" +
         escape(drawing.title) + "</title>\n<desc>" + escape(drawing.description) + "</desc>\n<style>\n" +
         style_sheet(drawing.medium) + "</style>\n" + elements.text() + "</svg>\n";
}

}  // namespace braid::apps
