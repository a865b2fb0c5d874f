#include "braid/models/data/vision/orientation.h"

#include <cstring>

namespace braid::models::vision {

namespace {

bool starts_with(std::span<const std::byte> bytes, const char* with, size_t n) {
  return bytes.size() >= n && std::memcmp(bytes.data(), with, n) == 0;
}

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  if (starts_with(exif, "Exif\0\0", 6)) exif = exif.subspan(6);
  const bool big = starts_with(exif, "MM\0*", 4);
  if (!big && !starts_with(exif, "II*\0", 4)) return 1;
  const auto number = [&](size_t at, size_t bytes) {  // 0 behind the end
    size_t value = 0;
    for (size_t i = 0; i < bytes && at + bytes <= exif.size(); ++i)
      value = value << 8 | static_cast<size_t>(exif[at + (big ? i : bytes - 1 - i)]);
    return value;
  };
  constexpr size_t kOrientation = 0x112, kByte = 1, kShort = 3, kLong = 4;
  const size_t directory = number(4, 4), entries = number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (number(entry, 2) != kOrientation) continue;
    const size_t type = number(entry + 2, 2);
    const size_t bytes = type == kByte ? 1 : type == kShort ? 2 : type == kLong ? 4 : 0;
    const size_t value = number(entry + 8, bytes);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1) return image;
  const bool transposed = orientation >= 5;
  const bool rows_reversed = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool columns_reversed = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const int64_t H = image.height, W = image.width;
  Image out{image.channels, transposed ? W : H, transposed ? H : W, std::vector<uint8_t>(image.pixels.size())};
  for (int64_t c = 0; c < out.channels; ++c)
    for (int64_t y = 0; y < out.height; ++y)
      for (int64_t x = 0; x < out.width; ++x) {
        const int64_t row = transposed ? x : y, column = transposed ? y : x;
        out.pixels[out.at(c, y, x)] =
            image.pixels[image.at(c, rows_reversed ? H - 1 - row : row, columns_reversed ? W - 1 - column : column)];
      }
  return out;
}

}  // namespace braid::models::vision
