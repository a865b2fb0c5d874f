#include "braid/models/families/vit/stem.h"

#include <cmath>
#include <string>

#include "braid/nn/init.h"

namespace braid::models {

namespace {
constexpr Pixels kKernel = {3, 3};
constexpr Conv2dOptions kHalve = {.stride = {2, 2}, .padding = {1, 1}};
}  // namespace

Pixels after_stem(Pixels image, size_t convolutions) {
  for (size_t i = 0; i < convolutions; ++i) image = {(image.rows + 1) / 2, (image.columns + 1) / 2};
  return image;
}

VitStem::VitStem(const Pixels& image, const std::vector<int64_t>& channels, double eps, RandomKey key) {
  for (size_t i = 0; i + 1 < channels.size(); ++i) {
    const double inputs = static_cast<double>(9 * channels[i]);
    Convolution made;
    made.image = after_stem(image, i);
    made.weight = nn::parameter(
        nn::Init::normal(1 / std::sqrt(inputs)).make({channels[i + 1], channels[i], 3, 3}, child(key, i)));
    made.norm = nn::LayerNorm(channels[i + 1], eps);
    convolutions_.push_back(std::move(made));
  }
}

void VitStem::make_windows(Device device) {
  for (Convolution& c : convolutions_) c.windows = window_pixels(c.image, kKernel, kHalve).to(device);
}

// The pixels lie side by side in memory: one look-up copies a pixel of all images.
Tensor VitStem::Convolution::operator()(const Tensor& x) const {
  const int64_t B = x.dim(1), C = x.dim(2), P = windows.dim(0), outputs = weight.dim(0);
  const Tensor table = concat({x, zeros({1, B, C}, x.dtype(), x.device())}, 0);
  const Tensor seen = permute(index_select(table, windows), {0, 2, 1, 3});  // (P, B, 9, C)
  const Tensor matrix = reshape(permute(weight, {0, 2, 3, 1}), {outputs, 9 * C});
  return gelu_tanh(norm(linear(reshape(seen, {P, B, 9 * C}), matrix)));
}

Tensor VitStem::operator()(const Tensor& pixel_values) const {
  if (convolutions_.empty()) return pixel_values;
  const int64_t B = pixel_values.dim(0), C = pixel_values.dim(1), pixels = pixel_values.dim(2) * pixel_values.dim(3);
  Tensor x = permute(reshape(pixel_values, {B, C, pixels}), {2, 0, 1});  // (H W, B, C)
  for (const Convolution& convolution : convolutions_) x = convolution(x);
  const Pixels end = after_stem(convolutions_.back().image, 1);
  return reshape(permute(x, {1, 2, 0}), {B, x.dim(2), end.rows, end.columns});
}

void VitStem::Convolution::visit(nn::Visitor& v) const {
  v("convolution.weight", weight);
  v("norm", norm);
}

void VitStem::visit(nn::Visitor& v) const {
  for (size_t i = 0; i < convolutions_.size(); ++i) v(std::to_string(i), convolutions_[i]);
}

}  // namespace braid::models
