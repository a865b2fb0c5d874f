// The operations of RandAugment.
#include <algorithm>
#include <array>
#include <cmath>

#include "braid/models/data/vision/augment.h"
#include "braid/tensor/error.h"

namespace braid::models::vision {

namespace {

constexpr double kEmpty = 128;  // where a moved image has no pixel

uint8_t byte(double v) { return static_cast<uint8_t>(std::clamp(std::lround(v), 0L, 255L)); }

template <class F>
Image each_pixel(Image p, const F& f) {
  for (uint8_t& v : p.pixels) v = byte(f(v));
  return p;
}

// Pixel (x, y) from the place matrix (x, y) + offset, both seen from the middle; the nearest pixel counts.
Image moved(const Image& p, double xx, double xy, double yx, double yy, double right, double down) {
  Image out = p;
  const double mx = static_cast<double>(p.width - 1) / 2, my = static_cast<double>(p.height - 1) / 2;
  for (int64_t y = 0; y < p.height; ++y)
    for (int64_t x = 0; x < p.width; ++x) {
      const double dx = static_cast<double>(x) - mx, dy = static_cast<double>(y) - my;
      const int64_t fx = std::llround(xx * dx + xy * dy + mx + right), fy = std::llround(yx * dx + yy * dy + my + down);
      const bool inside = fx >= 0 && fx < p.width && fy >= 0 && fy < p.height;
      for (int64_t c = 0; c < p.channels; ++c)
        out.pixels[p.at(c, y, x)] = inside ? p.pixels[p.at(c, fy, fx)] : static_cast<uint8_t>(kEmpty);
    }
  return out;
}

// How bright a pixel is: of red, green and blue by ITU-R 601, else the mean of its channels.
double luma(const Image& p, int64_t y, int64_t x) {
  if (p.channels == 3)
    return 0.299 * p.pixels[p.at(0, y, x)] + 0.587 * p.pixels[p.at(1, y, x)] + 0.114 * p.pixels[p.at(2, y, x)];
  double sum = 0;
  for (int64_t c = 0; c < p.channels; ++c) sum += p.pixels[p.at(c, y, x)];
  return sum / static_cast<double>(p.channels);
}

// other(c, y, x) + factor (image - other)
template <class F>
Image blended(const Image& p, double factor, const F& other) {
  Image out = p;
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t y = 0; y < p.height; ++y)
      for (int64_t x = 0; x < p.width; ++x) {
        const double o = other(c, y, x);
        out.pixels[p.at(c, y, x)] = byte(o + factor * (p.pixels[p.at(c, y, x)] - o));
      }
  return out;
}

Image contrast(const Image& p, double factor) {
  double mean = 0;
  for (int64_t y = 0; y < p.height; ++y)
    for (int64_t x = 0; x < p.width; ++x) mean += luma(p, y, x);
  mean /= static_cast<double>(p.height * p.width);
  return blended(p, factor, [&](int64_t, int64_t, int64_t) { return mean; });
}

Image sharpness(const Image& p, double factor) {
  return blended(p, factor, [&](int64_t c, int64_t y, int64_t x) -> double {
    if (y == 0 || x == 0 || y + 1 == p.height || x + 1 == p.width) return p.pixels[p.at(c, y, x)];
    double sum = 4.0 * p.pixels[p.at(c, y, x)];  // the smoothing kernel of Pillow: 5 in the middle, 1 around
    for (int64_t v = -1; v <= 1; ++v)
      for (int64_t h = -1; h <= 1; ++h) sum += p.pixels[p.at(c, y + v, x + h)];
    return sum / 13;
  });
}

// Every channel from 0 to 255.
Image autocontrast(Image p) {
  for (int64_t c = 0; c < p.channels; ++c) {
    const auto begin = p.pixels.begin() + c * p.height * p.width, end = begin + p.height * p.width;
    const auto [low, high] = std::minmax_element(begin, end);
    const double from = *low, range = *high - from;
    if (range > 0) std::for_each(begin, end, [&](uint8_t& v) { v = byte((v - from) * 255 / range); });
  }
  return p;
}

// Every value of a channel about equally often.
Image equalize(Image p) {
  for (int64_t c = 0; c < p.channels; ++c) {
    const auto begin = p.pixels.begin() + c * p.height * p.width, end = begin + p.height * p.width;
    std::array<int64_t, 256> count{};
    std::for_each(begin, end, [&](uint8_t v) { ++count[v]; });
    const int64_t last = *std::find_if(count.rbegin(), count.rend(), [](int64_t n) { return n > 0; });
    const int64_t step = (p.height * p.width - last) / 255;
    if (step == 0) continue;
    std::array<uint8_t, 256> table{};
    int64_t sum = step / 2;
    for (size_t v = 0; v < 256; ++v) {
      table[v] = static_cast<uint8_t>(std::min<int64_t>(255, sum / step));
      sum += count[v];
    }
    std::for_each(begin, end, [&](uint8_t& v) { v = table[v]; });
  }
  return p;
}

}  // namespace

Image randaugment_op(const Image& p, int64_t op, double s) {
  const double size = std::fabs(s), angle = s * 30 * M_PI / 180;
  switch (op) {
    case 0:
      return p;
    case 1:
      return autocontrast(p);
    case 2:
      return equalize(p);
    case 3:
      return moved(p, std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle), 0, 0);
    case 4: {
      const auto step = static_cast<int>(std::lround(256 - 256 * size));  // values from here on are inverted
      return each_pixel(p, [&](uint8_t v) { return v >= step ? 255 - v : v; });
    }
    case 5: {
      const int kept = std::max(1, 8 - static_cast<int>(std::lround(4 * size)));  // bits of a value
      return each_pixel(p, [&](uint8_t v) { return v & (0xFF << (8 - kept)); });
    }
    case 6:
      return blended(p, 1 + 0.9 * s, [&](int64_t, int64_t y, int64_t x) { return luma(p, y, x); });  // colour
    case 7:
      return contrast(p, 1 + 0.9 * s);
    case 8:
      return each_pixel(p, [&](uint8_t v) { return v * (1 + 0.9 * s); });  // brightness
    case 9:
      return sharpness(p, 1 + 0.9 * s);
    case 10:
      return moved(p, 1, 0.3 * s, 0, 1, 0, 0);  // sheared
    case 11:
      return moved(p, 1, 0, 0.3 * s, 1, 0, 0);
    case 12:
      return moved(p, 1, 0, 0, 1, 0.45 * s * static_cast<double>(p.width), 0);
    case 13:
      return moved(p, 1, 0, 0, 1, 0, 0.45 * s * static_cast<double>(p.height));
    default:
      fail("randaugment", str("there is no operation ", op));
  }
}

}  // namespace braid::models::vision
