// The IDX files of MNIST and Fashion-MNIST: images and labels, also compressed with gzip.
#pragma once
#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

bool is_idx_images(const std::string& path);  // by its name: ...images-idx3-ubyte or ...images-idx3-ubyte.gz
// The file of the labels: "images" and "idx3" in the name are "labels" and "idx1".
std::string idx_labels_of(const std::string& images);
// Every image with its label, in order. Error(input) names the file where the two do not fit each other or are
// damaged.
void read_idx(const std::string& images, const TakeImage& take);

}  // namespace braid::models::vision
