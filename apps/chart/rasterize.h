// SVG images as pixels.
#pragma once
#include <string>

namespace braid::apps {

// The image as PNG, twice as large as its units, by rsvg-convert (Debian: librsvg2-bin). Error(setting) where that
// program is missing, Error(internal) with its words where it fails.
std::string png_of(const std::string& svg);

}  // namespace braid::apps
