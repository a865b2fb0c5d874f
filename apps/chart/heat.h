// Colors of heat maps. Blue is more than 0, orange less; the stronger, the larger sqrt(|value| / max) is, so that small
// values show.
#pragma once
#include <vector>

#include "apps/chart/drawing.h"
#include "apps/chart/style.h"

namespace braid::apps {

// Shade 0 is clear, 1 to 127 are blue, 128 to 254 orange, 255 is what is masked.
inline constexpr int kShades = 127;  // of each color
inline constexpr uint8_t kMaskedShade = 2 * kShades + 1;

double heat_share(double value, double max);  // sqrt(|value| / max), at most 1
// values (rows, columns); masked where not finite.
Raster heat_raster(const std::vector<double>& values, int rows, int columns, double max);

struct HeatColors {
  Rgb more, less;
};
// On a screen such as show on white and on dark pages.
HeatColors heat_colors(const Medium& medium);
Rgb shade_color(uint8_t shade, const HeatColors& colors);
double shade_opacity(uint8_t shade);

}  // namespace braid::apps
