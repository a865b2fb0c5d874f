// The orientation that a camera notes in EXIF, and turning an image upright by it.
#pragma once
#include <cstddef>
#include <span>

#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

// 1 ... 8, of the first directory of a TIFF structure, before which "Exif\0\0" may stand; 1, upright, where it has none
// or is damaged.
int exif_orientation(std::span<const std::byte> exif);
// The image as it is to be seen: 2 to 4 mirror or turn it by 180 degrees, 5 to 8 exchange height and width.
Image upright(Image image, int orientation);

}  // namespace braid::models::vision
