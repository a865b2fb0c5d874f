#include "braid/models/data/vision/decode.h"
#include "braid/models/data/vision/orientation.h"
#include "braid/tensor/error.h"

#ifdef BRAID_PNG
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <optional>
#endif

namespace braid::models::vision {

#ifndef BRAID_PNG

Image decode_png(std::span<const std::byte>, const std::string& name) {
  fail(ErrorKind::setting,
       "cannot read " + name + ": Braid was built without libpng; install libpng-dev and build again");
}

#else

namespace {

// The content of the first chunk of this kind. Chunks: length (big-endian), kind, content, checksum.
std::optional<std::span<const std::byte> > find_chunk(std::span<const std::byte> bytes, const char* kind) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    uint32_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint32_t>(bytes[at + i]);
    if (length > bytes.size() - at - 12) return std::nullopt;
    if (std::memcmp(bytes.data() + at + 4, kind, 4) == 0) return bytes.subspan(at + 8, length);
    at += 12 + size_t{length};
  }
  return std::nullopt;
}

// The library leaves by a jump: between setjmp and the jump no object with a destructor begins to live.
struct PngFile {
  explicit PngFile(std::span<const std::byte> bytes) : rest(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, [](png_structp, png_const_charp) {});
    info = png ? png_create_info_struct(png) : nullptr;
    check(info != nullptr, "decode_png", "there is no memory for the state of libpng");
    png_set_read_fn(png, this, take);
  }
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  static void leave(png_structp png, png_const_charp text) {
    auto* file = static_cast<PngFile*>(png_get_error_ptr(png));
    std::snprintf(file->message, sizeof file->message, "%s", text);
    png_longjmp(png, 1);
  }
  static void take(png_structp png, png_bytep into, size_t n) {
    auto* file = static_cast<PngFile*>(png_get_io_ptr(png));
    if (n > file->rest.size()) png_error(png, "the file ends too early");
    std::memcpy(into, file->rest.data(), n);
    file->rest = file->rest.subspan(n);
  }

  // false: `message` says why.
  bool read_header() {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_read_info(png, info);
    return true;
  }
  // Rows of red, green, blue and alpha as they are coded: no gamma is applied, 16 bits give their high byte.
  bool read_rows(unsigned char* rows, size_t row_bytes) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "rows of another size");
    for (int pass = 0; pass < passes; ++pass)
      for (png_uint_32 y = 0; y < png_get_image_height(png, info); ++y)
        png_read_row(png, rows + y * row_bytes, nullptr);
    png_read_end(png, nullptr);
    return true;
  }

  std::span<const std::byte> rest;  // not read yet
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[128] = "";
};

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& name) {
  if (find_chunk(bytes, "acTL")) bad_image(name, "one still image", "an animated PNG");
  PngFile file(bytes);
  const auto check_result = [&](bool done) {
    if (!done) bad_image(name, "a whole PNG", str("damage: ", file.message));
  };
  check_result(file.read_header());
  const int64_t H = png_get_image_height(file.png, file.info), W = png_get_image_width(file.png, file.info);
  check_image_size(name, 3, H, W);
  std::vector<uint8_t> rows(static_cast<size_t>(4 * H * W));
  check_result(file.read_rows(rows.data(), static_cast<size_t>(4 * W)));
  Image image{3, H, W, std::vector<uint8_t>(static_cast<size_t>(3 * H * W))};
  for (int64_t i = 0; i < H * W; ++i)
    for (int64_t c = 0; c < 3; ++c) {  // laid on white, rounded as Pillow's alpha_composite
      const int value = rows[static_cast<size_t>(4 * i + c)], alpha = rows[static_cast<size_t>(4 * i + 3)];
      image.pixels[static_cast<size_t>(c * H * W + i)] =
          static_cast<uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
    }
  const auto exif = find_chunk(bytes, "eXIf");
  return upright(std::move(image), exif ? exif_orientation(*exif) : 1);
}

#endif

}  // namespace braid::models::vision
