#include "apps/chart/heat.h"

#include <algorithm>
#include <cmath>

namespace braid::apps {

double heat_share(double value, double max) { return max > 0 ? std::sqrt(std::min(1.0, std::fabs(value) / max)) : 0; }

Raster heat_raster(const std::vector<double>& values, int rows, int columns, double max) {
  Raster raster{.rows = rows, .columns = columns, .shades = {}};
  for (int i = 0; i < rows * columns; ++i) {
    const double x = values[static_cast<size_t>(i)];
    const auto shade = std::isfinite(x) ? static_cast<int>(std::lround(heat_share(x, max) * kShades)) : kMaskedShade;
    raster.shades.push_back(static_cast<uint8_t>(std::isfinite(x) && x < 0 && shade > 0 ? shade + kShades : shade));
  }
  return raster;
}

HeatColors heat_colors(const Medium& medium) {
  if (medium.paper()) return {*look_of("more").fill, *look_of("less").fill};
  return {0x2b7bc8, 0xd9711c};
}

double shade_opacity(uint8_t shade) {
  constexpr double kMaskedOpacity = 0.09;
  if (shade == kMaskedShade) return kMaskedOpacity;
  return static_cast<double>(shade > kShades ? shade - kShades : shade) / kShades;
}

Rgb shade_color(uint8_t shade, const HeatColors& colors) {
  return shade == kMaskedShade ? 0x808080 : shade > kShades ? colors.less : colors.more;
}

}  // namespace braid::apps
