// The binary files of CIFAR-10 and CIFAR-100: images of 3 x 32 x 32 behind one or two labels.
#pragma once
#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

bool is_cifar(const std::string& path);  // by its name: data_batch_1.bin ..., test_batch.bin; train.bin, test.bin
// Every image in order; of CIFAR-100 the fine label. Error(input) names the file and the byte.
void read_cifar(const std::string& path, const TakeImage& take);

}  // namespace braid::models::vision
