#include "braid/models/data/vision/augment.h"

#include <algorithm>
#include <cmath>

#include "braid/models/data/random_stream.h"

namespace braid::models::vision {

namespace {

Image like(const Image& p) { return {p.channels, p.height, p.width, std::vector<uint8_t>(p.pixels.size())}; }

// The old size out of the image between zeros, from place (down, right) of the padded image.
Image cropped(const Image& p, int64_t padding, int64_t down, int64_t right) {
  Image out = like(p);
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t y = 0; y < p.height; ++y)
      for (int64_t x = 0; x < p.width; ++x) {
        const int64_t from_y = y + down - padding, from_x = x + right - padding;
        if (from_y >= 0 && from_y < p.height && from_x >= 0 && from_x < p.width)
          out.pixels[p.at(c, y, x)] = p.pixels[p.at(c, from_y, from_x)];
      }
  return out;
}

void flip(Image& p) {
  for (auto row = p.pixels.begin(); row != p.pixels.end(); row += p.width) std::reverse(row, row + p.width);
}

// A rectangle of 2 to 33 % of the image, with sides of a ratio from 0.3 to 3.3, gets random pixels.
void erase(Image& p, RandomStream& stream, RandomKey noise) {
  const double area = stream.between(0.02, 0.33) * static_cast<double>(p.height * p.width);
  const double ratio = std::exp(stream.between(std::log(0.3), std::log(3.3)));
  const int64_t h = std::clamp<int64_t>(std::llround(std::sqrt(area * ratio)), 1, p.height);
  const int64_t w = std::clamp<int64_t>(std::llround(std::sqrt(area / ratio)), 1, p.width);
  const int64_t top = stream.below_by_unit(p.height - h + 1), left = stream.below_by_unit(p.width - w + 1);
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t y = top; y < top + h; ++y)
      for (int64_t x = left; x < left + w; ++x)
        p.pixels[p.at(c, y, x)] = static_cast<uint8_t>(random_bits(p.at(c, y, x), noise) & 255);
}

}  // namespace

Image augmented(const Image& image, const AugmentOptions& o, RandomKey key) {
  Image p = image;
  RandomStream stream(child(key, "augment"));
  if (o.crop_padding > 0) {
    const int64_t down = stream.below_by_unit(2 * o.crop_padding + 1),
                  right = stream.below_by_unit(2 * o.crop_padding + 1);
    p = cropped(p, o.crop_padding, down, right);
  }
  if (o.flip && stream.unit() < 0.5) flip(p);
  for (int64_t i = 0; i < o.randaugment_ops; ++i) {
    const int64_t op = stream.below_by_unit(kRandAugmentOps);
    const double sign = stream.unit() < 0.5 ? -1 : 1;
    p = randaugment_op(p, op, sign * static_cast<double>(o.randaugment_magnitude) / 30);
  }
  if (o.erase > 0 && stream.unit() < o.erase) erase(p, stream, child(key, "erase"));
  return p;
}

}  // namespace braid::models::vision
