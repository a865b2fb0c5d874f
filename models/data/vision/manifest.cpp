#include "braid/models/data/vision/manifest.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/models/data/vision/image.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::vision {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "braid-pictures";
constexpr int kVersion = 1;

std::string path_of(const std::string& folder) {
  return (std::filesystem::path(folder) / text::manifest_name).string();
}

ordered_json to_json(const text::SplitInfo& split) {
  ordered_json shards = ordered_json::array();
  for (const text::ShardInfo& s : split.shards)
    shards.push_back({{"file", s.file}, {"tokens", s.tokens}, {"checksum", detail::hex(s.checksum, 8)}});
  return {{"pictures", split.documents}, {"shards", shards}};
}

ordered_json to_json(const ImageManifest& m) {
  ordered_json j{{"format", kFormat},
                 {"version", kVersion},
                 {"picture", {{"channels", m.channels}, {"height", m.height}, {"width", m.width}}},
                 {"classes", m.classes},
                 {"mean", m.mean},
                 {"std", m.std},
                 {"split", {{"seed", m.seed}, {"val_fraction", m.val_fraction}}},
                 {"train", to_json(m.train)},
                 {"val", to_json(m.val)}};
  if (m.sizing)
    j["sizing"] = {{"height", m.sizing->height},         {"width", m.sizing->width},
                   {"shorter", m.sizing->shorter},       {"crop_height", m.sizing->crop_height},
                   {"crop_width", m.sizing->crop_width}, {"filter", static_cast<int>(m.sizing->filter)}};
  return j;
}

std::string fingerprint_of(const ImageManifest& m) {
  const std::string text = to_json(m).dump();
  const auto n = static_cast<int64_t>(text.size());
  const uint64_t high = io::crc32c(text.data(), n);
  return detail::hex(high << 32 | io::crc32c(text.data(), n, 0x9E3779B9u), 16);
}

// Fields of the file; every error names the field.
class Fields {
 public:
  explicit Fields(const std::string& path) : path_(path) {}

  [[noreturn]] void bad(const std::string& name, const std::string& expected, const json& found) const {
    const std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
    io::fail_input("bad field \"" + name + "\"", path_, -1, expected, text, "make the data again with braid prepare");
  }
  const json& get(const json& parent, const std::string& name) const {
    if (!parent.is_object() || !parent.contains(name)) bad(name, "a value", json());
    return parent.at(name);
  }
  int64_t count(const json& parent, const std::string& name, int64_t least, int64_t max) const {
    const json& v = get(parent, name);
    if (!v.is_number_unsigned() || v.get<uint64_t>() > static_cast<uint64_t>(max) || v.get<int64_t>() < least)
      bad(name, str("an integer from ", least, " to ", max), v);
    return v.get<int64_t>();
  }
  std::string text(const json& parent, const std::string& name) const {
    const json& v = get(parent, name);
    if (!v.is_string()) bad(name, "a string", v);
    return v.get<std::string>();
  }
  std::vector<double> numbers(const json& parent, const std::string& name, int64_t n, bool positive) const {
    const json& v = get(parent, name);
    if (!v.is_array() || std::ssize(v) != n) bad(name, str(n, " numbers"), v);
    std::vector<double> list;
    for (const json& item : v) {
      if (!item.is_number() || !std::isfinite(item.get<double>()) || (positive && item.get<double>() <= 0))
        bad(name, positive ? "positive numbers" : "numbers", item);
      list.push_back(item.get<double>());
    }
    return list;
  }
  text::SplitInfo split(const json& root, const std::string& name, int64_t record) const {
    const json& j = get(root, name);
    text::SplitInfo s{0, count(j, "pictures", 0, int64_t{1} << 40), {}};
    const json& shards = get(j, "shards");
    if (!shards.is_array()) bad("shards", "a list", shards);
    for (const json& shard : shards) {
      const std::string file = text(shard, "file"), checksum = text(shard, "checksum");
      if (file.empty() || file.front() == '.' || file.find('/') != std::string::npos ||
          file.find('\0') != std::string::npos)
        bad("file", "a file name without folder", file);
      if (checksum.size() != 8 || checksum.find_first_not_of("0123456789abcdef") != std::string::npos)
        bad("checksum", "8 hexadecimal digits", checksum);
      s.shards.push_back({file, count(shard, "tokens", 1, int64_t{1} << 48),
                          static_cast<uint32_t>(std::stoul(checksum, nullptr, 16))});
      s.tokens += s.shards.back().tokens;
      if (s.shards.back().tokens % record != 0) bad("tokens", str("a multiple of ", record), shard);
    }
    if (s.tokens != s.documents * record)
      bad(name + ".pictures", str(s.tokens / record, ", the sum over its shards"), s.documents);
    return s;
  }

 private:
  std::string path_;
};

}  // namespace

bool holds_images(const std::string& folder) {
  if (!io::exists(path_of(folder))) return false;
  const json j = io::read_json_file(path_of(folder), 256 << 20);
  return j.is_object() && j.contains("format") && j["format"] == kFormat;
}

void write_manifest(const std::string& folder, ImageManifest& manifest) {
  manifest.fingerprint = fingerprint_of(manifest);
  ordered_json j = to_json(manifest);
  j["fingerprint"] = manifest.fingerprint;
  io::write_file(path_of(folder), j.dump(2) + "\n");
}

ImageManifest read_image_manifest(const std::string& folder) {
  const std::string path = path_of(folder);
  const json j = io::read_json_file(path, 256 << 20);
  const Fields f(path);
  if (f.text(j, "format") != kFormat) f.bad("format", kFormat, j["format"]);
  f.count(j, "version", kVersion, kVersion);
  ImageManifest m;
  const json& image = f.get(j, "picture");
  m.channels = f.count(image, "channels", 1, 1024);
  m.height = f.count(image, "height", 1, kMaxSide);
  m.width = f.count(image, "width", 1, kMaxSide);
  if (m.channels * m.height * m.width > kMaxPixels) f.bad("picture", "a smaller image", image);
  const json& classes = f.get(j, "classes");
  if (!classes.is_array() || classes.empty()) f.bad("classes", "a list of names", classes);
  for (const json& name : classes) {
    if (!name.is_string()) f.bad("classes", "names", name);
    m.classes.push_back(name.get<std::string>());
  }
  m.mean = f.numbers(j, "mean", m.channels, false);
  m.std = f.numbers(j, "std", m.channels, true);
  const json &split = f.get(j, "split"), &seed = f.get(split, "seed"), &fraction = f.get(split, "val_fraction");
  if (!seed.is_number_unsigned()) f.bad("seed", "an integer", seed);
  if (!fraction.is_number() || !(fraction >= 0 && fraction < 1)) f.bad("val_fraction", "a number in [0, 1)", fraction);
  m.seed = seed.get<uint64_t>();
  m.val_fraction = fraction.get<double>();
  if (j.contains("sizing")) {
    const auto side = [&](const char* name) { return f.count(j["sizing"], name, 0, kMaxSide); };
    m.sizing = {side("height"),      side("width"),      side("shorter"),
                side("crop_height"), side("crop_width"), static_cast<Filter>(f.count(j["sizing"], "filter", 0, 3))};
  }
  m.train = f.split(j, "train", m.record());
  m.val = f.split(j, "val", m.record());
  m.fingerprint = f.text(j, "fingerprint");
  if (m.fingerprint != fingerprint_of(m)) f.bad("fingerprint", fingerprint_of(m), m.fingerprint);
  return m;
}

}  // namespace braid::models::vision
