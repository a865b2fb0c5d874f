// PNG and JPEG files as images of three channels, by libpng and libjpeg.
//
// 16-bit samples become bytes, palettes and grey become red, green and blue, transparent pixels are laid on white, and
// CMYK is converted. An animated image, a damaged one (also by a warning of the library) and one that is larger than
// image.h allows are Error(input) that names the file; the size is checked before anything of it is allocated.
#pragma once
#include <cstddef>
#include <span>

#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

Image read_image(const std::string& path);
// The kind is told by the first bytes. `name` is for messages.
Image decode_image(std::span<const std::byte> bytes, const std::string& name);

// decode_png.cpp, decode_jpeg.cpp. Without the library they are Error(setting) that names its package.
Image decode_png(std::span<const std::byte> bytes, const std::string& name);
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name);

// Rejects a size that image.h does not allow.
void check_image_size(const std::string& name, int64_t channels, int64_t height, int64_t width);
[[noreturn]] void bad_image(const std::string& name, const std::string& expected, const std::string& found);

}  // namespace braid::models::vision
