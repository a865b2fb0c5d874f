// An image with its class, as files hold it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::models::vision {

struct Image {
  int64_t channels = 0, height = 0, width = 0;  // C, H, W
  std::vector<uint8_t> pixels;                  // (C, H, W)
  size_t at(int64_t c, int64_t y, int64_t x) const { return static_cast<size_t>((c * height + y) * width + x); }
};

// Larger images are rejected before their pixels are allocated: a small file can claim any size.
inline constexpr int64_t kMaxSide = 1 << 14, kMaxPixels = 1 << 26;  // pixels: channels x height x width

// Receives one image after another; `name` is for messages: a path, or a path and a number in it.
using TakeImage = std::function<void(Image image, int64_t label, const std::string& name)>;

}  // namespace braid::models::vision
