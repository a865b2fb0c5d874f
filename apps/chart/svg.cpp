#include "apps/chart/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

// Hues after Okabe and Ito, darkened for white and lightened for dark paper so that thin lines keep their contrast.
constexpr const char* style = R"(<style>
text { font-family: "DejaVu Sans", "Segoe UI", Helvetica, Arial, sans-serif; font-size: 12px; fill: #24292f; }
.paper { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.panel { font-size: 13px; font-weight: 600; }
.quiet { fill: #57606a; }
.small { font-size: 11px; fill: #57606a; }
.grid { stroke: #e4e8ec; stroke-width: 1; }
.axis { stroke: #8c959f; stroke-width: 1; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.faint { fill: none; stroke-width: 1; stroke-opacity: 0.28; stroke-linejoin: round; }
.dot { stroke-width: 1.6; fill: #ffffff; }
.band { fill-opacity: 0.2; } .band.c0 { fill: #0068ab; stroke: none; } .band.c1 { fill: #c85200; stroke: none; }
.band.c2 { fill: #00805f; stroke: none; } .band.c3 { fill: #b0508c; stroke: none; }
.band.c4 { fill: #a87800; stroke: none; } .band.c5 { fill: #2e8fc4; stroke: none; }
.c0 { stroke: #0068ab; } .c1 { stroke: #c85200; } .c2 { stroke: #00805f; }
.c3 { stroke: #b0508c; } .c4 { stroke: #a87800; } .c5 { stroke: #2e8fc4; }
.more { fill: #14539a; } .less { fill: #c2590c; } .frame { fill: none; stroke: #d3d9e2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .paper { fill: #0d1117; } .quiet, .small { fill: #9aa4af; }
.grid { stroke: #262d36; } .axis { stroke: #6e7681; } .dot { fill: #0d1117; } .faint { stroke-opacity: 0.35; }
.c0 { stroke: #4aa3e0; } .c1 { stroke: #f28544; } .c2 { stroke: #2cc295; }
.c3 { stroke: #e08cc0; } .c4 { stroke: #e6b422; } .c5 { stroke: #8fd0f5; }
.more { fill: #8cc4ff; } .less { fill: #ffb066; } .frame { stroke: #333c48; }
}
</style>
)";

// Names come from the file system, which allows any byte; XML allows valid UTF-8 without most control characters.
std::string escape(std::string_view text) {
  std::string result;
  for (const char c : detail::show_bidi_controls(detail::replace_invalid_utf8(text))) {
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

// Hundredths of a pixel are enough, and shorter files for it. + 0.0 turns -0 into 0.
std::string number(double value) { return shortest(std::round(value * 100) / 100 + 0.0); }

std::string attribute(std::string_view name, std::string_view value) {
  std::string text(1, ' ');
  return text.append(name).append("=\"").append(escape(value)).append("\"");
}
std::string attribute(std::string_view name, double value) { return attribute(name, number(value)); }

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

Svg::Svg(double width, double height, const std::string& title, const std::string& description) {
  body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" + attribute("width", width) +
          attribute("height", height) + attribute("viewBox", "0 0 " + number(width) + " " + number(height)) + ">\n" +
          "<title>" + escape(title) + "</title>\n<desc>" + escape(description) + "</desc>\n" + style;
  rect(0, 0, width, height, "paper");
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  body_ += "<line" + attribute("class", css_class) + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + "/>\n";
}

void Svg::path(const Points& points, std::string_view css_class, std::string_view dash) {
  std::string d;
  int run = 0;  // points since the last gap
  const auto lift_pen = [&] {
    if (run == 1) d += "h0";  // a lone point shows as a dot
    run = 0;
  };
  for (const auto& [x, y] : points) {
    if (!std::isfinite(x) || !std::isfinite(y)) {
      lift_pen();
      continue;
    }
    d.append(1, run++ > 0 ? 'L' : 'M').append(number(x)).append(1, ' ').append(number(y));
  }
  lift_pen();
  if (d.empty()) return;
  body_ += "<path" + attribute("class", css_class) + (dash.empty() ? "" : attribute("stroke-dasharray", dash)) +
           attribute("d", d) + "/>\n";
}

void Svg::area(const Points& points, std::string_view css_class) {
  if (points.empty()) return;
  std::string d;
  for (const auto& [x, y] : points)
    d.append(1, d.empty() ? 'M' : 'L').append(number(x)).append(1, ' ').append(number(y));
  body_ += "<path" + attribute("class", css_class) + attribute("d", d + "Z") + "/>\n";
}

void Svg::circle(double x, double y, double radius, std::string_view css_class) {
  body_ += "<circle" + attribute("class", css_class) + attribute("cx", x) + attribute("cy", y) +
           attribute("r", radius) + "/>\n";
}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class) {
  body_ += "<rect" + attribute("class", css_class) + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + "/>\n";
}

void Svg::cell(double x, double y, double width, double height, std::string_view css_class, double opacity,
               std::string_view words) {
  body_ += "<rect" + attribute("class", css_class) + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + attribute("fill-opacity", opacity) + "><title>" + escape(words) +
           "</title></rect>\n";
}

void Svg::image(double x, double y, double width, double height, std::string_view png) {
  body_ += "<image style=\"image-rendering:pixelated\"" + attribute("x", x) + attribute("y", y) +
           attribute("width", width) + attribute("height", height) + " preserveAspectRatio=\"none\" href=\"" +
           "data:image/png;base64," + base64(png) + "\"/>\n";
}

void Svg::text(double x, double y, std::string_view words, std::string_view css_class, std::string_view anchor,
               double rotate) {
  body_ += "<text" + attribute("class", css_class) + attribute("x", x) + attribute("y", y);
  if (anchor != "start") body_ += attribute("text-anchor", anchor);
  if (rotate != 0)
    body_ += attribute("transform", "rotate(" + number(rotate) + " " + number(x) + " " + number(y) + ")");
  body_.append(1, '>').append(escape(words)).append("</text>\n");
}

void Svg::clip(double x, double y, double width, double height) {
  const std::string id = str("clip", clips_++);
  body_ += "<clipPath" + attribute("id", id) + ">";
  rect(x, y, width, height, "");
  body_ += "</clipPath>\n<g" + attribute("clip-path", "url(#" + id + ")") + ">\n";
}

void Svg::unclip() { body_ += "</g>\n"; }

std::string Svg::finish() { return body_ + "</svg>\n"; }

std::string series_class(std::string_view kind, int index) { return str(kind, " c", index % series_hues); }

std::string series_dash(int index) {
  constexpr const char* dashes[] = {"", "7 4", "2 4", "10 4 2 4"};
  return dashes[index / series_hues % 4];
}

double Axis::at(double value) const {
  const double share = log ? std::log(value / min) / std::log(max / min) : (value - min) / (max - min);
  return low + share * (high - low);
}

namespace {

// Number with just enough decimals for steps of this size; thousands and millions with a letter.
std::string tick_label(double value, double step, double largest) {
  if (value == 0) return "0";
  double scale = 1;
  const char* suffix = "";
  if (largest >= 1e9)
    scale = 1e9, suffix = "G";
  else if (largest >= 1e6)
    scale = 1e6, suffix = "M";
  else if (largest >= 1e4)
    scale = 1e3, suffix = "k";
  char buffer[64];
  if (largest < 1e-3) {
    const int digits = std::max(0, static_cast<int>(std::floor(std::log10(std::fabs(value)) + 1e-9)) -
                                       static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    std::snprintf(buffer, sizeof buffer, "%.*e", digits, value);
    // 3e-04 -> 3e-4
    std::string text = buffer;
    if (const size_t e = text.find("e-0"); e != std::string::npos) text.erase(e + 2, 1);
    return text;
  }
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / scale) - 1e-9)), 0, 12);
  std::snprintf(buffer, sizeof buffer, "%.*f%s", decimals, value / scale, suffix);
  return buffer;
}

std::vector<Tick> whole_ticks(const Axis& axis) {
  std::vector<Tick> result;
  for (double value = std::ceil(axis.min); value <= axis.max; ++value) result.push_back({value, shortest(value)});
  return result;
}

std::vector<Tick> linear_ticks(const Axis& axis, int count) {
  const double rough = (axis.max - axis.min) / std::max(1, count);
  if (!std::isfinite(rough) || !(rough > 0)) return {};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  if (axis.whole && rough < 1) return whole_ticks(axis);
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (!(axis.whole && factor * power == 2.5) && factor * power >= rough * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  std::vector<Tick> result;
  const double largest = std::max(std::fabs(axis.min), std::fabs(axis.max));
  // 2.5 needs a decimal more than its power of ten says.
  const double shown = std::fabs(step / power - 2.5) < 1e-9 ? step / 25 : step;
  const double first = std::ceil(axis.min / step - 1e-9);
  // Counted by an integer: beyond 2^53 a double plus one is the same double.
  for (int i = 0; i <= 2 * count + 2; ++i) {
    const double value = (first + i) * step;
    if (!(value <= axis.max + 1e-9 * step)) break;
    if (result.empty() || value > result.back().value) result.push_back({value, tick_label(value, shown, largest)});
  }
  return result;
}

}  // namespace

std::vector<Tick> ticks(const Axis& axis, int count) {
  if (!axis.log || !(axis.min > 0) || !std::isfinite(axis.max)) return linear_ticks(axis, count);
  // Whole powers of ten, then 1-2-5, then 1..9: the first set with at least three inside; else as on a linear axis.
  for (const std::vector<int>& digits : {std::vector<int>{1}, {1, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    std::vector<Tick> result;
    for (int e = static_cast<int>(std::floor(std::log10(axis.min))); e <= std::ceil(std::log10(axis.max)); ++e)
      for (const int digit : digits) {
        const double value = digit * std::pow(10, e);
        if (value >= axis.min * (1 - 1e-9) && value <= axis.max * (1 + 1e-9))
          result.push_back({value, tick_label(value, std::pow(10, e), value)});
      }
    if (result.size() < 3) continue;
    const size_t stride = (result.size() - 1) / static_cast<size_t>(std::max(1, 2 * count)) + 1;
    std::vector<Tick> thinned;
    for (size_t i = 0; i < result.size(); i += stride) thinned.push_back(result[i]);
    return thinned;
  }
  return linear_ticks(axis, count);
}

}  // namespace braid::apps
