// Changes of an image in training, each a pure function of a key: of the seed, the epoch and the sample.
#pragma once
#include "braid/models/data/vision/image.h"
#include "braid/tensor/random.h"

namespace braid::models::vision {

struct AugmentOptions {
  int64_t crop_padding = 0;     // zeros on each side, out of which the old size is cut at a random place; 0: none
  bool flip = false;            // left and right exchanged, every second time
  int64_t randaugment_ops = 0;  // RandAugment (Cubuk et al. 2019): so many operations, drawn anew for each image,
  int64_t randaugment_magnitude = 10;  // of this strength, from 0 to 30
  double erase = 0;  // probability of Random Erasing (Zhong et al. 2017): a rectangle of random pixels
  bool none() const { return crop_padding == 0 && !flip && randaugment_ops == 0 && erase == 0; }
};

// Crop, flip and RandAugment, then erasing.
Image augmented(const Image& image, const AugmentOptions& options, RandomKey key);
// One operation of RandAugment by its number, 0 ... kRandAugmentOps - 1; strength from -1 to 1, or 0 to 1 where the
// operation has no direction. Empty places become grey 128.
inline constexpr int64_t kRandAugmentOps = 14;
Image randaugment_op(const Image& image, int64_t op, double strength);

}  // namespace braid::models::vision
