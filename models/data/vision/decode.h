// PNG and JPEG files as images of three channels, by libpng and libjpeg.
//
// Values are taken as they are coded, as Pillow takes them: gamma, profiles and significant bits change nothing. Of 16
// bits the high byte counts, palettes and grey become red, green and blue, transparent pixels are laid on white, CMYK
// is converted, and the orientation of EXIF is applied. An animated image, a damaged one (JPEG: also by a warning of
// the library) and one that is larger than image.h allows are BadImage; the size is checked before its pixels are
// allocated.
#pragma once
#include <cstddef>
#include <span>

#include "braid/models/data/vision/image.h"
#include "braid/tensor/error.h"

namespace braid::models::vision {

// Error(input) of one image.
class BadImage : public Error {
 public:
  explicit BadImage(const std::string& reason)
      : Error(ErrorKind::input, "cannot decode image " + reason + "; fix or remove the file"), reason_(reason) {}
  // The file, what was expected and what was found, without advice.
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

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
