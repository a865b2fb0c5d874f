#include "braid/models/data/vision/prepare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "braid/models/data/prepare/document_hash.h"
#include "braid/models/data/prepare/output_folder.h"
#include "braid/models/data/text/shard.h"
#include "braid/models/data/vision/cifar.h"
#include "braid/models/data/vision/class_folder.h"
#include "braid/models/data/vision/idx.h"
#include "braid/models/data/vision/resize.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::vision {

namespace fs = std::filesystem;

namespace {

// All inputs are files whose labels are numbers, or all are folders whose names are the classes: which number a name
// has is not known.
void check_one_kind(const std::vector<std::string>& inputs) {
  const auto is_file = [](const std::string& input) { return is_idx_images(input) || is_cifar(input); };
  const auto other = std::ranges::find(inputs, !is_file(inputs[0]), is_file);
  check(other == inputs.end(), ErrorKind::input, [&] {
    return "the classes of " + inputs[0] + " and " + *other + " cannot be compared: expected IDX and CIFAR files, " +
           "whose classes have numbers, or folders, whose classes have names, found both; prepare them apart";
  });
}

// The images of one input. Class names are appended for folders, and must be those that are there already.
void read_input(const std::string& input, std::vector<std::string>& classes, const TakeImage& take, BadImages& bad) {
  check(io::exists(input), ErrorKind::input, [&] { return "no such file or folder: " + input; });
  if (is_idx_images(input)) return read_idx(input, take);
  if (is_cifar(input)) return read_cifar(input, take);
  check(io::is_folder(input), ErrorKind::input, [&] {
    return "unknown kind of images: expected an IDX file (...images-idx3-ubyte or .gz), a CIFAR file "
           "(data_batch_1.bin, test_batch.bin, train.bin, test.bin) or a folder with a folder for each class, found " +
           input;
  });
  read_class_folder(input, classes, take, bad);
}

// The shards of one split.
class SplitWriter {
 public:
  SplitWriter(const text::PreparedFolder& folder, const char* name, int64_t shard_tokens)
      : folder_(folder), name_(name), shard_tokens_(shard_tokens) {}

  // The vocabulary is that of labels and pixels; labels above it would not be classes.
  void write(const Image& image, int64_t label) {
    const int64_t record = 1 + std::ssize(image.pixels);
    if (!shard_ || shard_->tokens() + record > shard_tokens_) begin();
    tokens_.assign(1, static_cast<int32_t>(label));
    tokens_.insert(tokens_.end(), image.pixels.begin(), image.pixels.end());
    shard_->write(tokens_);
    split_.tokens += record;
    ++split_.documents;
  }
  text::SplitInfo finish() {
    end();
    return split_;
  }

 private:
  void begin() {
    end();
    char file[32];
    std::snprintf(file, sizeof file, "%s-%05zu.tok", name_, split_.shards.size());
    file_ = file;
    shard_ = std::make_unique<text::ShardWriter>(folder_.file(file_), kRecordVocabulary, 0);
  }
  void end() {
    if (!shard_) return;
    const text::ShardHeader header = shard_->commit();
    split_.shards.push_back({file_, header.tokens, header.checksum});
    shard_.reset();
  }

  const text::PreparedFolder& folder_;
  const char* name_;
  int64_t shard_tokens_;
  std::string file_;
  std::unique_ptr<text::ShardWriter> shard_;
  std::vector<int32_t> tokens_;
  text::SplitInfo split_;
};

// Mean and deviation of each channel, from exact sums.
class Statistics {
 public:
  void add(const Image& p) {
    sum_.resize(static_cast<size_t>(p.channels)), squares_.resize(sum_.size());
    for (int64_t c = 0; c < p.channels; ++c)
      for (int64_t i = 0; i < p.height * p.width; ++i) {
        const uint64_t v = p.pixels[static_cast<size_t>(c * p.height * p.width + i)];
        sum_[static_cast<size_t>(c)] += v, squares_[static_cast<size_t>(c)] += v * v;
      }
    pixels_ += static_cast<double>(p.height * p.width);
  }
  void finish(ImageManifest& m) const {
    for (size_t c = 0; c < sum_.size(); ++c) {
      const double mean = static_cast<double>(sum_[c]) / pixels_;
      const double variance = static_cast<double>(squares_[c]) / pixels_ - mean * mean;
      m.mean.push_back(mean / 255);
      m.std.push_back(std::max(std::sqrt(std::max(variance, 0.0)), 1.0) / 255);  // images of one colour: a step
    }
  }

 private:
  std::vector<uint64_t> sum_, squares_;
  double pixels_ = 0;
};

double share_of(const Image& image, uint64_t seed) {
  text::DocumentHasher hasher;
  hasher.add({reinterpret_cast<const char*>(&seed), sizeof seed});
  hasher.add({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
  return static_cast<double>(hasher.finish().low >> 11) * 0x1p-53;
}

void check_same_size(ImageManifest& m, const Image& p, const std::string& name) {
  if (m.channels == 0) m.channels = p.channels, m.height = p.height, m.width = p.width;
  check(p.channels == m.channels && p.height == m.height && p.width == m.width, ErrorKind::input, [&] {
    const auto text = [](int64_t c, int64_t h, int64_t w) { return str(c, " x ", h, " x ", w); };
    return name + " has another size: expected channels x height x width = " + text(m.channels, m.height, m.width) +
           " as the images before it, found " + text(p.channels, p.height, p.width) +
           (p.channels == m.channels ? "; set `size` to resize all" : "");
  });
}

void name_classes(ImageManifest& m, const std::vector<std::string>& names, int64_t classes) {
  check(m.classes.empty(), ErrorKind::setting,
        "`classes` is for IDX and CIFAR files: folders give their classes the own names");
  check(std::ssize(names) >= classes, ErrorKind::input, [&] {
    return str("too few names of classes: expected at least ", classes, " names, as many as labels, found ",
               names.size());
  });
  std::set<std::string> found;
  for (const std::string& name : names) {
    check(!name.empty(), ErrorKind::input, "a name of a class is empty: expected one a line");
    check(found.insert(name).second, ErrorKind::input,
          [&] { return "two classes have the name " + detail::preview(name) + ": it is there twice"; });
  }
  m.classes = names;
}

}  // namespace

PrepareImagesSummary prepare_images(const PrepareImagesOptions& o, const ShowImages& show) {
  check(!o.inputs.empty(), ErrorKind::setting, "no images: expected at least one of `inputs`");
  std::vector<std::string> all = o.inputs;
  all.insert(all.end(), o.val_inputs.begin(), o.val_inputs.end());
  check_one_kind(all);
  PrepareImagesSummary summary;
  ImageManifest& m = summary.manifest;
  m.seed = o.seed;
  m.val_fraction = o.val_inputs.empty() ? o.val_fraction : 0;
  const Sizing sizing = o.sizing.value_or(Sizing{.height = o.size, .width = o.size});
  if (sizing.shorter > 0 || sizing.crop_height > 0 || sizing.filter != Filter::bilinear) m.sizing = sizing;
  const bool has_manifest = io::exists(fs::path(o.output) / text::manifest_name);
  const std::string before = has_manifest && holds_images(o.output) ? read_image_manifest(o.output).fingerprint : "";

  text::PreparedFolder folder(o.output);
  SplitWriter train(folder, "train", o.shard_tokens), val(folder, "val", o.shard_tokens);
  Statistics statistics;
  BadImages bad;
  int64_t images = 0, classes = 0;
  const auto read = [&](const std::vector<std::string>& inputs, bool validation) {
    const TakeImage take = [&](Image image, int64_t label, const std::string& name) {
      image = sized(std::move(image), sizing, name);
      check_same_size(m, image, name);
      classes = std::max(classes, label + 1);
      if (validation || (m.val_fraction > 0 && share_of(image, o.seed) < m.val_fraction)) {
        val.write(image, label);
      } else {
        train.write(image, label);
        statistics.add(image);
      }
      if (show) show(++images, name);
    };
    for (const std::string& input : inputs) read_input(input, m.classes, take, bad);
  };
  read(o.inputs, false);
  read(o.val_inputs, true);
  bad.raise();
  m.train = train.finish();
  m.val = val.finish();
  check(m.train.documents > 0, ErrorKind::input, [&] {
    return "no image to train on in " + o.inputs[0] + ": expected at least one; lower `val_fraction` or give more";
  });
  if (!o.classes.empty()) name_classes(m, o.classes, classes);
  if (m.classes.empty())
    for (int64_t k = 0; k < classes; ++k) m.classes.push_back(std::to_string(k));
  statistics.finish(m);
  write_manifest(folder.path(), m);
  summary.unchanged = m.fingerprint == before;
  check(!has_manifest || summary.unchanged || o.replace, ErrorKind::setting, [&] {
    return o.output + " holds other data: expected fingerprint " + m.fingerprint + ", found " +
           (before.empty() ? "data of text" : before) +
           "; runs that were trained on it would not resume; set `replace`, or name another folder";
  });
  folder.commit();
  return summary;
}

}  // namespace braid::models::vision
