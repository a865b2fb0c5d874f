// PNG images: heat maps of many cells with a palette, a byte a cell, on paper of any color; and images as they are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/chart/heat.h"

namespace braid::apps {

// A pixel for each shade (heat.h).
std::string heat_png(const Raster& raster, const HeatColors& colors);

// pixels (C, rows, columns) of one channel, grey, or three, red, green and blue.
std::string image_png(const std::vector<uint8_t>& pixels, int channels, int rows, int columns);

}  // namespace braid::apps
