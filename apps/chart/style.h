// The looks of shapes: one table, from which the style sheet of SVG and the colors of PDF come.
//
// A look is a list of names: what a shape is (line, dot, band, grid, ...) and, for series, its hue ("line c1").
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/chart/medium.h"

namespace braid::apps {

// Six hues that colour-blind people tell apart, then the same hues dashed. Looks "line c0".."line c5".
inline constexpr int series_hues = 6;
std::string series_look(std::string_view kind, int index);  // ("line", 7) -> "line c1"
std::string series_dash(int index);                         // "" for 0..5, then "7 4", "2 4", "10 4 2 4"

using Rgb = uint32_t;  // 0xrrggbb
struct Look {
  std::optional<Rgb> stroke, fill;  // on white; none: not painted
  double width = 1;                 // of the stroke, in units
  double opacity = 1;
};
Look look_of(std::string_view names);

struct TextLook {
  Rgb fill = 0;
  double size = 12;  // in units
  bool bold = false;
};
// On paper all text has the size of 12 units.
TextLook text_look_of(std::string_view names, const Medium& medium);

// The same as CSS. On a screen with colors for a dark page, which the viewer chooses; on paper without.
std::string style_sheet(const Medium& medium);

std::string hex(Rgb color);  // "#0068ab"
Rgb on_white(Rgb color, double opacity);

}  // namespace braid::apps
