#include "apps/chart/style.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

struct Tone {  // a color on a white page and on a dark one
  Rgb light, dark;
};

// Hues after Okabe and Ito, darkened for white and lightened for dark paper so that thin lines keep their contrast.
constexpr Tone hues[series_hues] = {{0x0068ab, 0x4aa3e0}, {0xc85200, 0xf28544}, {0x00805f, 0x2cc295},
                                    {0xb0508c, 0xe08cc0}, {0xa87800, 0xe6b422}, {0x2e8fc4, 0x8fd0f5}};

struct ShapeStyle {
  std::string_view name;
  std::optional<Tone> stroke, fill;
  double width = 1, opacity = 1;
  bool hue_fills = false;  // the hue of the series is the fill, not the stroke
};
constexpr ShapeStyle shape_styles[] = {{"paper", {}, Tone{0xffffff, 0x0d1117}},
                                       {"grid", Tone{0xe4e8ec, 0x262d36}, {}},
                                       {"axis", Tone{0x8c959f, 0x6e7681}, {}},
                                       {"frame", Tone{0xd3d9e2, 0x333c48}, {}},
                                       {"line", {}, {}, 1.8},
                                       {"faint", {}, {}, 1, 0.28},
                                       {"dot", {}, Tone{0xffffff, 0x0d1117}, 1.6},
                                       {"band", {}, {}, 1, 0.2, true},
                                       {"bar", {}, {}, 1, 0.85, true},
                                       {"more", {}, Tone{0x14539a, 0x8cc4ff}},
                                       {"less", {}, Tone{0xc2590c, 0xffb066}}};

struct TextStyle {
  std::string_view name;  // "": without one
  Tone fill;
  double size = 12;
  bool bold = false;
};
constexpr Tone kInk = {0x24292f, 0xe6edf3}, kQuiet = {0x57606a, 0x9aa4af};
constexpr TextStyle text_styles[] = {
    {"", kInk}, {"title", kInk, 17, true}, {"panel", kInk, 13, true}, {"quiet", kQuiet}, {"small", kQuiet, 11}};

std::string rule(const std::string& selector, const std::string& properties) {
  return properties.empty() ? "" : selector + " { " + properties + "}\n";
}

std::string colors(const ShapeStyle& s, bool dark) {
  const auto of = [&](const Tone& tone) { return hex(dark ? tone.dark : tone.light) + "; "; };
  return (s.stroke ? "stroke: " + of(*s.stroke) : "") + (s.fill ? "fill: " + of(*s.fill) : dark ? "" : "fill: none; ");
}

std::string color_rules(bool dark) {
  std::string css;
  for (const TextStyle& s : text_styles)
    css += rule(s.name.empty() ? "text" : str(".", s.name), "fill: " + hex(dark ? s.fill.dark : s.fill.light) + "; ");
  for (const ShapeStyle& s : shape_styles) css += rule(str(".", s.name), colors(s, dark));
  for (int i = 0; i < series_hues; ++i) {
    const std::string color = hex(dark ? hues[i].dark : hues[i].light) + "; ";
    css += rule(str(".c", i), "stroke: " + color) + rule(str(".band.c", i), "fill: " + color + "stroke: none; ") +
           rule(str(".bar.c", i), "fill: " + color + "stroke: none; ");
  }
  return css;
}

}  // namespace

std::string hex(Rgb color) {
  char text[8];
  return {text, static_cast<size_t>(std::snprintf(text, sizeof text, "#%06x", color))};
}

Rgb on_white(Rgb color, double opacity) {
  Rgb result = 0;
  for (const int at : {16, 8, 0})
    result |= static_cast<Rgb>(std::lround(255 - (255 - double(color >> at & 255)) * opacity)) << at;
  return result;
}

std::string series_look(std::string_view kind, int index) { return str(kind, " c", index % series_hues); }

std::string series_dash(int index) {
  constexpr const char* dashes[] = {"", "7 4", "2 4", "10 4 2 4"};
  return dashes[index / series_hues % 4];
}

Look look_of(std::string_view names) {
  Look look;
  bool hue_fills = false;
  for (const std::string& name : split(std::string(names), ' ')) {
    if (const auto* s = std::ranges::find(shape_styles, name, &ShapeStyle::name); s != std::end(shape_styles)) {
      if (s->stroke) look.stroke = s->stroke->light;
      if (s->fill) look.fill = s->fill->light;
      look.width = s->width, look.opacity = s->opacity, hue_fills = s->hue_fills;
    } else if (name.size() == 2 && name[0] == 'c' && name[1] >= '0' && name[1] < '0' + series_hues) {
      (hue_fills ? look.fill : look.stroke) = hues[name[1] - '0'].light;
    }
  }
  return look;
}

TextLook text_look_of(std::string_view names, const Medium& medium) {
  const auto* s = std::ranges::find(text_styles, names, &TextStyle::name);
  if (s == std::end(text_styles)) s = text_styles;
  return {.fill = s->fill.light, .size = medium.paper() ? 12 : s->size, .bold = s->bold};
}

std::string style_sheet(const Medium& medium) {
  const bool paper = medium.paper();
  std::string css = str("text { font-family: ", paper ? "" : "\"DejaVu Sans\", \"Segoe UI\", ",
                        "Helvetica, Arial, sans-serif; font-size: 12px; }\n");
  for (const TextStyle& s : text_styles) {
    std::string properties = paper || s.size == 12 ? "" : str("font-size: ", shortest(s.size), "px; ");
    if (s.bold) properties += "font-weight: 600; ";
    css += rule(str(".", s.name), properties);
  }
  for (const ShapeStyle& s : shape_styles)
    css += rule(str(".", s.name), (s.width == 1 ? "" : str("stroke-width: ", shortest(s.width), "; ")) +
                                      (s.opacity == 1 ? ""
                                                      : str("stroke-opacity: ", shortest(s.opacity),
                                                            "; fill-opacity: ", shortest(s.opacity), "; ")));
  css += ".line, .faint { stroke-linejoin: round; stroke-linecap: round; }\n" + color_rules(false);
  if (!paper) css += "@media (prefers-color-scheme: dark) {\n" + color_rules(true) + "}\n";
  return css;
}

}  // namespace braid::apps
