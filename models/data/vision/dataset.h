// A prepared folder of pictures, read in any order.
#pragma once
#include <memory>

#include "braid/models/data/text/dataset.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/data/vision/picture.h"

namespace braid::models::vision {

class PictureDataset {
 public:
  // Checks the manifest and every shard's header; the pictures are checked as they are read. Error(input) when anything
  // does not fit together, or the split has no picture.
  PictureDataset(const std::string& folder, text::Split split);

  int64_t size() const { return starts_.back(); }  // pictures
  int64_t label(int64_t i) const;
  // Picture i and its label. Safe to call from several threads at once.
  int64_t read(int64_t i, Picture& into) const;
  const PictureManifest& manifest() const { return manifest_; }

 private:
  std::vector<int32_t> record(int64_t i, int64_t tokens) const;

  PictureManifest manifest_;
  std::shared_ptr<text::OpenFiles> files_;
  std::vector<text::ShardReader> shards_;
  std::vector<int64_t> starts_;  // first picture of each shard, and the end
};

}  // namespace braid::models::vision
