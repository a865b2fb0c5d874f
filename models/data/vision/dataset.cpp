#include "braid/models/data/vision/dataset.h"

#include <algorithm>
#include <filesystem>

#include "braid/models/data/text/open_files.h"
#include "braid/tensor/error.h"

namespace braid::models::vision {

namespace {
constexpr const char* kAdvice = "make the data again with braid prepare";
constexpr size_t kOpenFiles = 64;
}  // namespace

ImageDataset::ImageDataset(const std::string& folder, text::Split split)
    : manifest_(read_image_manifest(folder)),
      input_(own_input(manifest_)),
      files_(std::make_shared<text::OpenFiles>(kOpenFiles)),
      starts_{0} {
  const text::SplitInfo& info = split == text::Split::train ? manifest_.train : manifest_.val;
  check(info.documents > 0, ErrorKind::input, [&] {
    return str("the ", name(split), " split of ", folder, " has no image: expected at least one; ", kAdvice);
  });
  for (const text::ShardInfo& shard : info.shards) {
    const std::string path = (std::filesystem::path(folder) / shard.file).string();
    shards_.emplace_back(path, files_);
    const text::ShardHeader& header = shards_.back().header();
    if (header.tokens != shard.tokens || header.checksum != shard.checksum || header.vocab_size != kRecordVocabulary)
      io::fail_input("not the shard that dataset.json names", path, -1,
                     str(shard.tokens, " tokens with checksum ", shard.checksum),
                     str(header.tokens, " with ", header.checksum), kAdvice);
    starts_.push_back(starts_.back() + shard.tokens / manifest_.record());
  }
}

// The first tokens of record i.
std::vector<int32_t> ImageDataset::record(int64_t i, int64_t tokens) const {
  check(i >= 0 && i < size(), "images", [&] { return str("image ", i, " is not one of ", size()); });
  const auto shard = std::ranges::upper_bound(starts_, i) - starts_.begin() - 1;
  std::vector<int32_t> record(static_cast<size_t>(tokens));
  const auto at = static_cast<size_t>(shard);
  shards_[at].read((i - starts_[at]) * manifest_.record(), record);
  check(record[0] < std::ssize(manifest_.classes), ErrorKind::input, [&] {
    return str("bad label of image ", i, ": expected a class below ", manifest_.classes.size(), ", found ", record[0],
               "; ", kAdvice);
  });
  return record;
}

int64_t ImageDataset::label(int64_t i) const { return input_.labels[static_cast<size_t>(record(i, 1)[0])]; }

int64_t ImageDataset::read(int64_t i, Image& into) const {
  const std::vector<int32_t> all = record(i, manifest_.record());
  into.channels = manifest_.channels, into.height = manifest_.height, into.width = manifest_.width;
  into.pixels.resize(all.size() - 1);
  for (size_t p = 0; p + 1 < all.size(); ++p) {
    check(all[p + 1] < 256, ErrorKind::input,
          [&] { return str("bad pixel ", all[p + 1], " in image ", i, ": expected a byte; ", kAdvice); });
    into.pixels[p] = static_cast<uint8_t>(all[p + 1]);
  }
  return input_.labels[static_cast<size_t>(all[0])];
}

}  // namespace braid::models::vision
