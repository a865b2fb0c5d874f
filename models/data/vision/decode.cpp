#include "braid/models/data/vision/decode.h"

#include <cstring>

#include "braid/tensor/io/reader.h"

namespace braid::models::vision {

namespace {

bool begins(std::span<const std::byte> bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

}  // namespace

void bad_image(const std::string& name, const std::string& expected, const std::string& found) {
  throw BadImage(name + ": expected " + expected + ", found " + found);
}

void check_image_size(const std::string& name, int64_t channels, int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide || channels * height * width > kMaxPixels)
    bad_image(name, str("sides from 1 to ", kMaxSide, " and at most ", kMaxPixels, " samples"),
              str(channels, " x ", height, " x ", width));
}

Image decode_image(std::span<const std::byte> bytes, const std::string& name) {
  if (begins(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes, name);
  if (begins(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, name);
  bad_image(name, "a PNG or JPEG file",
            bytes.empty()           ? "an empty file"
            : begins(bytes, "GIF8") ? "a GIF file"
            : begins(bytes, "RIFF") ? "a RIFF file, as WebP is"
                                    : "another kind of file");
}

Image read_image(const std::string& path) {
  constexpr int64_t kMaxBytes = 1 << 28;
  const std::string text = io::read_text_file(path, kMaxBytes);
  return decode_image(std::as_bytes(std::span(text)), path);
}

}  // namespace braid::models::vision
