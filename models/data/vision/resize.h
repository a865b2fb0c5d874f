// Resizing with antialiasing, bit for bit as the filters of Pillow 11 and 12 do it; 13 differs by 1.
#pragma once
#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

enum class Filter : uint8_t { nearest, lanczos, bilinear, bicubic };  // by Pillow's numbers

// Both sides, the aspect is not kept. First along rows, then along columns, with bytes between; a pass that changes
// nothing is left out.
Image resized(const Image& image, int64_t height, int64_t width, Filter filter = Filter::bilinear);

// How images get the size that a model reads.
struct Sizing {
  int64_t height = 0, width = 0;            // resized to; 0: not resized, or
  int64_t shorter = 0;                      // the shorter side, the aspect is kept
  int64_t crop_height = 0, crop_width = 0;  // cut out of the centre after that; 0: nothing is cut off
  Filter filter = Filter::bilinear;
  bool operator==(const Sizing&) const = default;
};
// Error(input) that names an image that is smaller than what is to be cut out of it, or becomes too large (image.h).
Image sized(Image image, const Sizing& sizing, const std::string& name);
// "resized to 8 x 8 (bilinear)"
std::string describe(const Sizing& sizing);

}  // namespace braid::models::vision
