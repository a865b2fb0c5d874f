#include "braid/models/data/vision/decode.h"
#include "braid/models/data/vision/orientation.h"
#include "braid/tensor/error.h"

#ifdef BRAID_JPEG
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>
#endif

namespace braid::models::vision {

#ifndef BRAID_JPEG

Image decode_jpeg(std::span<const std::byte>, const std::string& name) {
  fail(ErrorKind::setting,
       "cannot read " + name + ": Braid was built without libjpeg; install libjpeg-dev and build again");
}

#else

namespace {

// The library leaves by a jump: between setjmp and the jump no object with a destructor begins to live.
struct Failure : jpeg_error_mgr {
  jmp_buf leave;
  char message[JMSG_LENGTH_MAX] = "";
};

void leave(j_common_ptr info) {
  auto* failure = static_cast<Failure*>(info->err);
  failure->format_message(info, failure->message);
  std::longjmp(failure->leave, 1);
}
// A warning means that pixels are invented: the file is damaged.
void on_message(j_common_ptr info, int level) {
  if (level < 0) leave(info);
}

// Reads the header, then, with room, the rows. false: failure.message says why.
bool read_header(jpeg_decompress_struct& info, Failure& failure, std::span<const std::byte> bytes) {
  if (setjmp(failure.leave) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&info, TRUE);
  const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four ? JCS_CMYK : JCS_RGB;
  return true;
}
bool read_rows(jpeg_decompress_struct& info, Failure& failure, unsigned char* rows, int64_t row_bytes) {
  if (setjmp(failure.leave) != 0) return false;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    unsigned char* row = rows + int64_t{info.output_scanline} * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// The orientation that the first marker with EXIF gives.
int orientation_of(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* m = info.marker_list; m; m = m->next)
    if (m->data_length >= 6 && std::memcmp(m->data, "Exif\0\0", 6) == 0)
      return exif_orientation(std::as_bytes(std::span(m->data, m->data_length)));
  return 1;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
  Failure failure;
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&failure);
  failure.error_exit = leave;
  failure.emit_message = on_message;
  struct Destroy {
    jpeg_decompress_struct& info;
    ~Destroy() { jpeg_destroy_decompress(&info); }
  } destroy{info};
  const auto check_result = [&](bool done) {
    if (!done) bad_image(name, "a whole JPEG", str("damage: ", failure.message));
  };
  check_result(read_header(info, failure, bytes));
  const int64_t H = info.image_height, W = info.image_width, channels = info.out_color_space == JCS_CMYK ? 4 : 3;
  check_image_size(name, channels, H, W);
  std::vector<uint8_t> rows(static_cast<size_t>(channels * H * W));
  const int orientation = orientation_of(info);  // the end of reading drops the markers
  check_result(read_rows(info, failure, rows.data(), channels * W));
  Image image{3, H, W, std::vector<uint8_t>(static_cast<size_t>(3 * H * W))};
  // Programs of Adobe write CMYK inverted, and say so: then a sample is how much light is left.
  const bool inverted = info.saw_Adobe_marker != 0;
  for (int64_t i = 0; i < H * W; ++i)
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t* pixel = rows.data() + channels * i;
      int value = pixel[c];
      if (channels == 4) {
        const int light = inverted ? pixel[c] : 255 - pixel[c], key = inverted ? pixel[3] : 255 - pixel[3];
        value = (light * key + 127) / 255;
      }
      image.pixels[static_cast<size_t>(c * H * W + i)] = static_cast<uint8_t>(value);
    }
  return upright(std::move(image), orientation);
}

#endif

}  // namespace braid::models::vision
