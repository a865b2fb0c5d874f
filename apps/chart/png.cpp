#include "apps/chart/png.h"

namespace braid::apps {
namespace {

std::string big_endian(uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8), static_cast<char>(x)};
}

// The check sum of a PNG chunk: polynomial 0xedb88320, bits in the order of their arrival.
uint32_t crc32(const std::string& bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

uint32_t adler32(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<uint32_t>(data.size())) + type + data + big_endian(crc32(type + data));
}

// A zlib stream of blocks that are stored as they are.
std::string stored(const std::string& data) {
  std::string stream = "\x78\x01";
  for (size_t begin = 0; begin < data.size(); begin += 65535) {
    const size_t size = std::min<size_t>(65535, data.size() - begin);
    const auto length = static_cast<uint16_t>(size), inverse = static_cast<uint16_t>(~length);
    stream += begin + size == data.size() ? '\1' : '\0';
    for (const uint16_t x : {length, inverse}) stream += {static_cast<char>(x & 255), static_cast<char>(x >> 8)};
    stream += data.substr(begin, size);
  }
  return stream + big_endian(adler32(data));
}

// 8 bits a channel; kind: 0 grey, 2 red, green and blue, 3 an index of the palette in `palette`.
std::string file(int columns, int rows, char kind, const std::string& palette, const std::string& lines) {
  const std::string header = big_endian(static_cast<uint32_t>(columns)) + big_endian(static_cast<uint32_t>(rows)) +
                             std::string{'\10', kind, '\0', '\0', '\0'};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + palette + chunk("IDAT", stored(lines)) + chunk("IEND", "");
}

}  // namespace

std::string heat_png(const Raster& raster, const HeatColors& colors) {
  std::string palette, alphas, pixels;
  for (int s = 0; s <= kMaskedShade; ++s) {
    const auto shade = static_cast<uint8_t>(s);
    for (const int at : {16, 8, 0}) palette += static_cast<char>(shade_color(shade, colors) >> at & 255);
    alphas += static_cast<char>(static_cast<int>(shade_opacity(shade) * 255));
  }
  for (size_t i = 0; i < raster.shades.size(); ++i) {
    if (i % static_cast<size_t>(raster.columns) == 0) pixels += '\0';  // no filter
    pixels += static_cast<char>(raster.shades[i]);
  }
  return file(raster.columns, raster.rows, '\3', chunk("PLTE", palette) + chunk("tRNS", alphas), pixels);
}

std::string image_png(const std::vector<uint8_t>& pixels, int channels, int rows, int columns) {
  const auto plane = static_cast<size_t>(rows) * static_cast<size_t>(columns);
  const bool color = channels == 3;  // of another number the first is shown
  std::string lines;
  for (size_t at = 0; at < plane; ++at) {
    if (at % static_cast<size_t>(columns) == 0) lines += '\0';  // no filter
    for (size_t c = 0; c < (color ? 3u : 1u); ++c) lines += static_cast<char>(pixels[c * plane + at]);
  }
  return file(columns, rows, color ? '\2' : '\0', "", lines);
}

}  // namespace braid::apps
