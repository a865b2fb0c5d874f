// A prepared folder of images, read in any order.
#pragma once
#include <memory>

#include "braid/models/data/text/dataset.h"
#include "braid/models/data/vision/image.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/data/vision/model_input.h"

namespace braid::models::vision {

class ImageDataset {
 public:
  // Checks the manifest and every shard's header; the images are checked as they are read. Error(input) when anything
  // does not fit together, or the split has no image.
  ImageDataset(const std::string& folder, text::Split split);

  int64_t size() const { return starts_.back(); }  // images
  // Labels are from now on those of a model; at first they are those of the data.
  void take_as(ModelInput input) { input_ = std::move(input); }
  const ModelInput& input() const { return input_; }
  int64_t label(int64_t i) const;
  // Image i and its label. Safe to call from several threads at once.
  int64_t read(int64_t i, Image& into) const;
  const ImageManifest& manifest() const { return manifest_; }

 private:
  std::vector<int32_t> record(int64_t i, int64_t tokens) const;

  ImageManifest manifest_;
  ModelInput input_;
  std::shared_ptr<text::OpenFiles> files_;
  std::vector<text::ShardReader> shards_;
  std::vector<int64_t> starts_;  // first image of each shard, and the end
};

}  // namespace braid::models::vision
