// What `braid prepare --images` does: images with their classes in, a data folder that training reads out.
#pragma once
#include <functional>
#include <optional>

#include "braid/models/data/vision/manifest.h"

namespace braid::models::vision {

struct PrepareImagesOptions {
  // IDX files (the images; the labels lie beside them), CIFAR files, folders with one folder of PNG and JPEG files
  // for each class; a folder of IDX or CIFAR files gives those of the training split.
  std::vector<std::string> inputs;
  std::vector<std::string> val_inputs;  // the validation split; empty: a share of `inputs`
  std::vector<std::string> classes;     // names, by label; empty: numbers, or the names of folders
  std::string output;
  double val_fraction = 0.1;
  uint64_t seed = 1;
  int64_t size = 0;                   // both sides after resizing; 0: as they are, which must be the same for all
  std::optional<Sizing> sizing = {};  // instead of it, as a model asks for it (preprocessing.h)
  bool replace = false;
  int64_t shard_tokens = 1 << 28;
};

struct PrepareImagesSummary {
  ImageManifest manifest;
  bool unchanged = false;  // the folder held the same data already
};

// Called after every image with the number so far.
using ShowImages = std::function<void(int64_t images, const std::string& name)>;

// Equal images come into the same split. Error(input) names the images that are damaged (bad_images.h), or the first of
// another size or of another number of channels; nothing is left out. The folder appears complete or not at all.
PrepareImagesSummary prepare_images(const PrepareImagesOptions& options, const ShowImages& show = {});

}  // namespace braid::models::vision
