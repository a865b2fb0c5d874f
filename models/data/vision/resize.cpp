#include "braid/models/data/vision/resize.h"

#include <algorithm>
#include <cmath>

#include "braid/tensor/error.h"

namespace braid::models::vision {

namespace {

constexpr int kFraction = 22;  // bits of a weight behind the point

// The pixels that make a new one, with their weights: a triangle as wide as the new pixel, at least as wide as an old.
struct Taps {
  int64_t first = 0;
  std::vector<int64_t> weights;
};

std::vector<Taps> taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), half = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - half + 0.5)));
    const int64_t last = std::min(from, static_cast<int64_t>(std::floor(centre + half + 0.5)));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      const double distance = std::fabs((static_cast<double>(x) - centre + 0.5) / half);
      weights.push_back(distance < 1 ? 1 - distance : 0);
      sum += weights.back();
    }
    Taps of_pixel{first, {}};
    for (const double w : weights)
      of_pixel.weights.push_back(static_cast<int64_t>(std::floor(w / sum * (int64_t{1} << kFraction) + 0.5)));
    all.push_back(std::move(of_pixel));
  }
  return all;
}

// `lines` lines of `from` pixels, `stride` apart, to lines of `to`.
void pass(const uint8_t* in, int64_t step_in, uint8_t* out, int64_t step_out, const std::vector<Taps>& taps) {
  for (size_t i = 0; i < taps.size(); ++i) {
    int64_t sum = int64_t{1} << (kFraction - 1);
    for (size_t k = 0; k < taps[i].weights.size(); ++k)
      sum += taps[i].weights[k] * in[(taps[i].first + static_cast<int64_t>(k)) * step_in];
    out[static_cast<int64_t>(i) * step_out] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> kFraction, 0, 255));
  }
}

}  // namespace

Image resized(const Image& p, int64_t height, int64_t width) {
  check(height >= 1 && width >= 1 && height <= kMaxSide && width <= kMaxSide, "resize",
        [&] { return str("the new size must lie between 1 and ", kMaxSide, ", got ", height, " x ", width); });
  Image wide = p;
  if (width != p.width) {
    wide = {p.channels, p.height, width, std::vector<uint8_t>(static_cast<size_t>(p.channels * p.height * width))};
    const std::vector<Taps> across = taps(p.width, width);
    for (int64_t row = 0; row < p.channels * p.height; ++row)
      pass(p.pixels.data() + row * p.width, 1, wide.pixels.data() + row * width, 1, across);
  }
  if (height == p.height) return wide;
  Image all{p.channels, height, width, std::vector<uint8_t>(static_cast<size_t>(p.channels * height * width))};
  const std::vector<Taps> down = taps(p.height, height);
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t x = 0; x < width; ++x)
      pass(wide.pixels.data() + c * p.height * width + x, width, all.pixels.data() + c * height * width + x, width,
           down);
  return all;
}

}  // namespace braid::models::vision
