// PNG images: heat maps of many cells with a palette, a byte a cell, on paper of any color; and images as they are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace braid::apps {

// values (rows, columns), a pixel each: blue for more than 0, orange for less, the stronger the larger
// sqrt(|value| / most) is; grey where the value is not finite.
std::string heat_png(const std::vector<double>& values, int rows, int columns, double max);

// pixels (C, rows, columns) of one channel, grey, or three, red, green and blue.
std::string image_png(const std::vector<uint8_t>& pixels, int channels, int rows, int columns);

}  // namespace braid::apps
