// dataset.json of a folder of images: what it holds, so that damage and mixed-up files are noticed.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/text/manifest.h"
#include "braid/models/data/vision/resize.h"

namespace braid::models::vision {

// A record is written as tokens of this vocabulary: the label, below 65536, then pixels.
inline constexpr int64_t kRecordVocabulary = 65536;

struct ImageManifest {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<std::string> classes;  // names, in the order of the labels
  std::vector<double> mean, std;     // of the training split, for each channel, of pixels in [0, 1]
  std::optional<Sizing> sizing;      // how they got their size, where that was as a model asks for it
  uint64_t seed = 0;                 // of the split
  double val_fraction = 0;           // requested; 0 where files were named for validation
  // In both, documents are images, and tokens those of their records: the label, then C x H x W pixels.
  text::SplitInfo train, val;
  std::string fingerprint;  // of everything above, 16 hex digits: the identity of the data

  // Without a word about it images count as resized to their size.
  Sizing sizing_or_size() const { return sizing.value_or(Sizing{.height = height, .width = width}); }
  int64_t record() const { return 1 + channels * height * width; }  // tokens of an image
};

// Whether the folder holds images, by the format that its dataset.json names; false where there is none.
bool holds_images(const std::string& folder);
// Writes folder/dataset.json and sets the fingerprint.
void write_manifest(const std::string& folder, ImageManifest& manifest);
// Error(input) naming the file and the field when it is damaged or was edited.
ImageManifest read_image_manifest(const std::string& folder);

}  // namespace braid::models::vision
