// Resizing with antialiasing, bit for bit as Pillow's bilinear filter does it.
#pragma once
#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

// Both sides, the aspect is not kept. First along rows, then along columns, with bytes between; a pass that changes
// nothing is left out.
Image resized(const Image& image, int64_t height, int64_t width);

}  // namespace braid::models::vision
