// JPEG files of given pixels, with little loss.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>  // needs <cstdio> before it

namespace braid::test {

// rows: (H, W, channels).
inline std::string jpeg(J_COLOR_SPACE space, int channels, int H, int W, std::vector<uint8_t> rows) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = static_cast<JDIMENSION>(W), info.image_height = static_cast<JDIMENSION>(H);
  info.input_components = channels, info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    unsigned char* row = rows.data() + static_cast<size_t>(info.next_scanline) * static_cast<size_t>(W * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&info);
  std::free(out);
  return bytes;
}

}  // namespace braid::test
