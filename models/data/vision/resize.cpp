#include "braid/models/data/vision/resize.h"

#include <algorithm>
#include <cmath>

#include "braid/tensor/error.h"

namespace braid::models::vision {

namespace {

constexpr int kFraction = 22;  // bits of a weight behind the point

struct Kernel {
  const char* name;
  double support;  // 0: one pixel
  double (*weight)(double);
};

double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }

// The weights are functions of |x| below the support.
const Kernel& kernel(Filter filter) {
  static constexpr Kernel kernels[] = {
      {"nearest", 0, nullptr},
      {"lanczos", 3, [](double x) { return sinc(x) * sinc(x / 3); }},
      {"bilinear", 1, [](double x) { return 1 - x; }},
      {"bicubic", 2, [](double x) { return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2; }},
  };
  return kernels[static_cast<size_t>(filter)];
}

// The pixels that make a new one, with their weights: a kernel scaled to the new pixel, at least to an old one.
struct Taps {
  int64_t first = 0;
  std::vector<int64_t> weights;
};

std::vector<Taps> taps(int64_t from, int64_t to, const Kernel& kernel) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), wide = std::max(scale, 1.0);
  const double half = kernel.support * wide;
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    if (kernel.support == 0) {
      all.push_back({static_cast<int64_t>(centre), {int64_t{1} << kFraction}});
      continue;
    }
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - half + 0.5)));
    const int64_t last = std::min(from, static_cast<int64_t>(std::floor(centre + half + 0.5)));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      const double distance = std::fabs((static_cast<double>(x) - centre + 0.5) / wide);
      weights.push_back(distance < kernel.support ? kernel.weight(distance) : 0);
      sum += weights.back();
    }
    Taps of_pixel{first, {}};
    for (const double w : weights) of_pixel.weights.push_back(std::llround(w / sum * (int64_t{1} << kFraction)));
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

Image resized(const Image& p, int64_t height, int64_t width, Filter filter) {
  check(height >= 1 && width >= 1 && height <= kMaxSide && width <= kMaxSide, "resize",
        [&] { return str("the new size must lie between 1 and ", kMaxSide, ", got ", height, " x ", width); });
  Image wide = p;
  if (width != p.width) {
    wide = {p.channels, p.height, width, std::vector<uint8_t>(static_cast<size_t>(p.channels * p.height * width))};
    const std::vector<Taps> across = taps(p.width, width, kernel(filter));
    for (int64_t row = 0; row < p.channels * p.height; ++row)
      pass(p.pixels.data() + row * p.width, 1, wide.pixels.data() + row * width, 1, across);
  }
  if (height == p.height) return wide;
  Image all{p.channels, height, width, std::vector<uint8_t>(static_cast<size_t>(p.channels * height * width))};
  const std::vector<Taps> down = taps(p.height, height, kernel(filter));
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t x = 0; x < width; ++x)
      pass(wide.pixels.data() + c * p.height * width + x, width, all.pixels.data() + c * height * width + x, width,
           down);
  return all;
}

Image sized(Image image, const Sizing& s, const std::string& name) {
  int64_t H = s.height > 0 ? s.height : image.height, W = s.width > 0 ? s.width : image.width;
  if (s.shorter > 0) {
    const int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
    const auto other = static_cast<int64_t>(static_cast<double>(s.shorter * longer) / static_cast<double>(shorter));
    H = image.height <= image.width ? s.shorter : other, W = image.height <= image.width ? other : s.shorter;
  }
  check(H <= kMaxSide && W <= kMaxSide && image.channels * H * W <= kMaxPixels, ErrorKind::input,
        [&] { return str(name, " would be too large: ", describe(s), " it has ", H, " x ", W, " pixels"); });
  if (H != image.height || W != image.width) image = resized(image, H, W, s.filter);
  if (s.crop_height == 0) return image;
  check(s.crop_height <= H && s.crop_width <= W, ErrorKind::input, [&] {
    return str(name, " is too small: expected at least ", s.crop_height, " x ", s.crop_width,
               " pixels to cut out of its centre, found ", H, " x ", W);
  });
  Image out{image.channels, s.crop_height, s.crop_width, {}};
  const int64_t top = (H - s.crop_height) / 2, left = (W - s.crop_width) / 2;
  for (int64_t c = 0; c < out.channels; ++c)
    for (int64_t y = top; y < top + out.height; ++y) {
      const auto row = image.pixels.begin() + static_cast<int64_t>(image.at(c, y, left));
      out.pixels.insert(out.pixels.end(), row, row + out.width);
    }
  return out;
}

std::string describe(const Sizing& s) {
  std::string text;
  if (s.shorter > 0) text = str("the shorter side resized to ", s.shorter);
  if (s.height > 0) text = str("resized to ", s.height, " x ", s.width);
  if (!text.empty()) text += str(" (", kernel(s.filter).name, ")");
  if (s.crop_height > 0)
    text += str(text.empty() ? "" : ", ", s.crop_height, " x ", s.crop_width, " cut out of the centre");
  return text.empty() ? "as they are" : text;
}

}  // namespace braid::models::vision
