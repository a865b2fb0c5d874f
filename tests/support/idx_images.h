// Images in IDX files for tests: grey, 8 x 8, in two classes: a bright left half, a bright upper half; and noise.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "braid/tensor/random.h"

namespace braid::test {

// Writes `n` (at most 255) images and their labels into the folder, in turn of either class. Returns the path of the
// images.
inline std::string write_idx_images(const std::filesystem::path& folder, const std::string& set, int n) {
  std::string images("\0\0\10\3\0\0\0", 7), labels("\0\0\10\1\0\0\0", 7);
  images += static_cast<char>(n), labels += static_cast<char>(n);
  images += std::string("\0\0\0\10\0\0\0\10", 8);
  for (int i = 0; i < n; ++i) {
    labels += static_cast<char>(i % 2);
    for (uint64_t p = 0; p < 64; ++p) {
      const bool bright = i % 2 == 0 ? p % 8 < 4 : p < 32;
      images += static_cast<char>((bright ? 150 : 40) + random_bits(p, {static_cast<uint64_t>(i), 3}) % 60);
    }
  }
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (set + "-labels-idx1-ubyte"), std::ios::binary) << labels;
  std::ofstream(folder / (set + "-images-idx3-ubyte"), std::ios::binary) << images;
  return (folder / (set + "-images-idx3-ubyte")).string();
}

}  // namespace braid::test
