// Attention of a Vision Transformer over one image: how much each patch is attended to, head by head, before Compose
// and after it.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/models/families/vit/model.h"

namespace braid::models {

struct ImageAttention {
  int64_t layers = 0, heads = 0, rows = 0, columns = 0;  // L, N, of the grid of patches
  bool composed = false;                                 // some layer mixes heads
  bool class_token = false;  // the weights are those of its query; otherwise the mean over the queries of all patches
  // (L, N, rows x columns): probabilities before and after Compose; the same without it. The weight of the class token
  // itself is left out.
  std::vector<double> before, after;

  size_t at(int64_t layer, int64_t head, int64_t patch) const {
    return static_cast<size_t>((layer * heads + head) * rows * columns + patch);
  }
};

// pixel_values (1, C, H, W), normalised.
ImageAttention image_attention(const Vit& model, const Tensor& pixel_values);

}  // namespace braid::models
