#include "braid/models/data/vision/decode.h"
#include "braid/tensor/error.h"

#ifdef BRAID_PNG
#include <png.h>

#include <cstring>
#endif

namespace braid::models::vision {

#ifndef BRAID_PNG

Image decode_png(std::span<const std::byte>, const std::string& name) {
  fail(ErrorKind::setting,
       "cannot read " + name + ": Braid was built without libpng; install libpng-dev and build again");
}

#else

namespace {

// Whether a chunk of this kind stands before the pixels. Chunks: length (big-endian), kind, content, checksum.
bool has_chunk(std::span<const std::byte> bytes, const char* kind) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    uint32_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint32_t>(bytes[at + i]);
    if (std::memcmp(bytes.data() + at + 4, kind, 4) == 0) return true;
    if (std::memcmp(bytes.data() + at + 4, "IDAT", 4) == 0 || length > bytes.size() - at - 12) return false;
    at += 12 + size_t{length};
  }
  return false;
}

struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& name) {
  if (has_chunk(bytes, "acTL")) bad_image(name, "one still image", "an animated PNG");
  PngImage png;
  const auto check_result = [&](int done) {
    if (done == 0 || PNG_IMAGE_FAILED(png)) bad_image(name, "a whole PNG", str("damage: ", png.message));
  };
  check_result(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()));
  const int64_t H = png.height, W = png.width;
  check_image_size(name, 3, H, W);
  png.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> rows(static_cast<size_t>(3 * H * W));
  const png_color white{255, 255, 255};
  check_result(png_image_finish_read(&png, &white, rows.data(), 0, nullptr));
  Image image{3, H, W, std::vector<uint8_t>(rows.size())};
  for (int64_t i = 0; i < H * W; ++i)
    for (int64_t c = 0; c < 3; ++c)
      image.pixels[static_cast<size_t>(c * H * W + i)] = rows[static_cast<size_t>(3 * i + c)];
  return image;
}

#endif

}  // namespace braid::models::vision
