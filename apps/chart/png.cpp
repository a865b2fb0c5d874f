#include "apps/chart/png.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace braid::apps {
namespace {

constexpr int kShades = 127;  // of each color

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

std::string heat_png(const std::vector<double>& values, int rows, int columns, double max) {
  // Entry 0 is clear, then the shades of blue, those of orange, and grey.
  std::string colors(3, '\0'), alphas(1, '\0');
  for (const std::array<char, 3>& color : {std::array<char, 3>{'\x2b', '\x7b', '\xc8'}, {'\xd9', '\x71', '\x1c'}})
    for (int shade = 1; shade <= kShades; ++shade) {
      colors.append(color.data(), 3);
      alphas += static_cast<char>(shade * 255 / kShades);
    }
  colors += "\x80\x80\x80";
  alphas += '\x18';
  std::string pixels;
  for (int i = 0; i < rows; ++i) {
    pixels += '\0';  // no filter
    for (int j = 0; j < columns; ++j) {
      const double x = values[static_cast<size_t>(i * columns + j)];
      const double share = max > 0 ? std::sqrt(std::min(1.0, std::fabs(x) / max)) : 0;
      const int shade = std::isfinite(x) ? static_cast<int>(std::lround(share * kShades)) : 2 * kShades + 1;
      pixels += static_cast<char>(std::isfinite(x) && x < 0 && shade > 0 ? shade + kShades : shade);
    }
  }
  return file(columns, rows, '\3', chunk("PLTE", colors) + chunk("tRNS", alphas), pixels);
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
