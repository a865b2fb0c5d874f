// Convolutions between an image and its patches (Xiao et al. 2021, "Early Convolutions Help Transformers See Better"):
// each of them 3 x 3 with stride 2 and a row of zeros around the image, then LayerNorm over the channels, then GELU.
//
//   x (B, C, H, W) -> (B, C', ceil(H / 2), ceil(W / 2)) -> ...
//
// A small image has few patches, and a linear layer must learn what an edge is for each position in a patch.
// Convolutions share their weights over all positions, so they learn it sooner.
#pragma once
#include <vector>

#include "braid/autograd/convolution.h"
#include "braid/nn/layers/norm.h"
#include "braid/nn/module.h"

namespace braid::models {

class VitStem final : public nn::Module {
 public:
  VitStem() = default;
  // channels: of the image, then of each convolution.
  VitStem(const Pixels& image, const std::vector<int64_t>& channels, double eps, RandomKey key);
  Tensor operator()(const Tensor& pixel_values) const;
  // Makes the tables of the pixels that the convolutions look up, on the device of the weights. Call it after the
  // weights have moved.
  void make_windows(Device device);
  void visit(nn::Visitor& v) const override;

 private:
  struct Convolution final : nn::Module {
    Pixels image;                              // before it
    Tensor weight;                             // (C', C, 3, 3)
    nn::LayerNorm norm;                        // of C'
    Tensor windows;                            // i64 (P, 9), window_pixels
    Tensor operator()(const Tensor& x) const;  // x (H W, B, C) -> (P, B, C')
    void visit(nn::Visitor& v) const override;
  };
  std::vector<Convolution> convolutions_;
};

// Pixels of an image after `convolutions` of them.
Pixels after_stem(Pixels image, size_t convolutions);

}  // namespace braid::models
