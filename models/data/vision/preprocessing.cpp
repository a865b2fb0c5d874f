#include "braid/models/data/vision/preprocessing.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/models/data/vision/image.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::vision {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Keys of the file; those that are missing or null have the defaults of ViTImageProcessor.
class ProcessorKeys {
 public:
  ProcessorKeys(const json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) bad("the file", "an object", object);
  }

  [[noreturn]] void bad(const std::string& key, const std::string& expected, const json& found) const {
    io::fail_input("bad value for " + key, path_, -1, expected,
                   found.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60), "");
  }
  const json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  bool flag(const char* key, bool fallback) const {
    const json* value = find(key);
    if (value && !value->is_boolean()) bad(key, "true or false", *value);
    return value ? value->get<bool>() : fallback;
  }
  double number(const std::string& key, const json& value, bool positive) const {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || (positive && value.get<double>() <= 0))
      bad(key, positive ? "a positive number" : "a number", value);
    return value.get<double>();
  }
  std::vector<double> numbers(const char* key, bool positive) const {
    const json* value = find(key);
    if (!value) return {0.5};
    if (!value->is_array()) return {number(key, *value, positive)};
    if (value->empty()) bad(key, "a number for each channel", *value);
    std::vector<double> all;
    for (const json& item : *value) all.push_back(number(key, item, positive));
    return all;
  }
  int64_t side(const char* key, const json& value) const {
    if (!value.is_number_integer() || value < 1 || value > kMaxSide)
      bad(key, str("an integer from 1 to ", kMaxSide), value);
    return value.get<int64_t>();
  }
  // {"height", "width"}, {"shortest_edge"} where `shorter` is given, or one number for both sides.
  void size(const char* key, int64_t& height, int64_t& width, int64_t* shorter) const {
    const json* value = find(key);
    if (!value) return;
    if (!value->is_object()) {
      height = width = side(key, *value);
    } else if (value->contains("height") && value->contains("width")) {
      height = side(key, (*value)["height"]), width = side(key, (*value)["width"]);
    } else if (shorter && value->size() == 1 && value->contains("shortest_edge")) {
      *shorter = side(key, (*value)["shortest_edge"]);
    } else {
      bad(key, str("height and width", shorter ? ", or shortest_edge" : ""), *value);
    }
  }

 private:
  const json& object_;
  std::string path_;
};

}  // namespace

std::optional<Preprocessing> read_preprocessing(const std::filesystem::path& folder) {
  const std::string path = (folder / kPreprocessorFile).string();
  if (!io::exists(path)) return std::nullopt;
  Preprocessing p{.text = io::read_text_file(path, 1 << 20), .mean = {0}, .std = {1}, .sizing = {}};
  const json object = io::parse_json(p.text, path);
  const ProcessorKeys keys(object, path);
  if (const json* factor = keys.find("rescale_factor")) p.rescale = keys.number("rescale_factor", *factor, true);
  if (!keys.flag("do_rescale", true)) p.rescale = 1;
  if (keys.flag("do_normalize", true))
    p.mean = keys.numbers("image_mean", false), p.std = keys.numbers("image_std", true);
  if (keys.flag("do_resize", true)) {
    keys.size("size", p.sizing.height, p.sizing.width, &p.sizing.shorter);
    if (const json* filter = keys.find("resample")) {
      if (!filter->is_number_integer() || *filter < 0 || *filter > 3)
        keys.bad("resample", "0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)", *filter);
      p.sizing.filter = static_cast<Filter>(filter->get<int>());
    }
  }
  if (keys.flag("do_center_crop", false)) keys.size("crop_size", p.sizing.crop_height, p.sizing.crop_width, nullptr);
  return p;
}

std::string preprocessor_config(const ImageManifest& m) {
  const auto both = [](int64_t height, int64_t width) { return ordered_json{{"height", height}, {"width", width}}; };
  const Sizing s = m.sizing_or_size();
  ordered_json j{{"image_processor_type", "ViTImageProcessor"},
                 {"do_convert_rgb", m.channels == 3},
                 {"do_resize", s.height > 0 || s.shorter > 0},
                 {"resample", static_cast<int>(s.filter)},
                 {"do_center_crop", s.crop_height > 0}};
  if (s.shorter > 0) j["size"]["shortest_edge"] = s.shorter;
  if (s.height > 0) j["size"] = both(s.height, s.width);
  if (s.crop_height > 0) j["crop_size"] = both(s.crop_height, s.crop_width);
  j.update({{"do_rescale", true}, {"rescale_factor", 1.0 / 255}, {"do_normalize", true}});
  j["image_mean"] = m.mean, j["image_std"] = m.std;
  return j.dump(2) + "\n";
}

}  // namespace braid::models::vision
