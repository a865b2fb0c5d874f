#include "braid/models/data/vision/model_input.h"

#include <algorithm>
#include <numeric>

#include "braid/tensor/base/strings.h"

namespace braid::models::vision {

namespace {

std::vector<int64_t> unchanged(size_t classes) {
  std::vector<int64_t> labels(classes);
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

void scale(const std::vector<double>& mean, const std::vector<double>& std, double rescale, int64_t channels,
           ModelInput& input) {
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double m = mean.size() == 1 ? mean[0] : mean[c], d = std.size() == 1 ? std[0] : std[c];
    input.factor.push_back(rescale / d);
    input.offset.push_back(-m / d);
  }
}

}  // namespace

ModelInput own_input(const ImageManifest& data) {
  ModelInput input{.classes = data.classes, .labels = unchanged(data.classes.size()), .factor = {}, .offset = {}};
  scale(data.mean, data.std, 1.0 / 255, data.channels, input);
  return input;
}

std::vector<int64_t> match_classes(const std::vector<std::string>& data, const std::vector<std::string>& names,
                                   int64_t count, const std::string& folder, ErrorKind kind) {
  if (names.empty() || data == names) {
    check(std::ssize(data) == count, kind, [&] {
      return str("the classes of the images in ", folder, " are not those of the model: expected ", count, ", found ",
                 data.size());
    });
    return unchanged(data.size());
  }
  std::vector<int64_t> labels;
  std::vector<std::string> unknown, twice;
  for (const std::string& name : data) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) {
      unknown.push_back(name);
    } else if (std::find(at + 1, names.end(), name) != names.end()) {
      twice.push_back(name);
    }
    labels.push_back(at - names.begin());
  }
  const auto listed = [](const std::vector<std::string>& list) {
    return detail::preview(detail::join(list, ", "), 200) + str(" (", list.size(), ")");
  };
  check(unknown.empty(), kind, [&] {
    return "the model does not know classes of the images in " + folder + ": expected classes of its id2label, " +
           listed(names) + ", found also " + listed(unknown) +
           "; give both the same names (the folders of the classes, braid prepare --classes, id2label in config.json)";
  });
  check(twice.empty(), kind, [&] {
    return "the model has several labels for classes of the images in " + folder +
           ": expected different names in its " + "id2label, found more than once " + listed(twice) +
           "; rename them in config.json and in the data";
  });
  return labels;
}

ModelInput model_input(const ImageManifest& data, const std::string& folder, const ImageModel& model,
                       const std::optional<Preprocessing>& preprocessing, std::vector<std::string>& notes) {
  const Shape images{data.channels, data.height, data.width};
  check(model.image_shape() == images, ErrorKind::input, [&] {
    return str("the images in ", folder, " do not fit the model: expected ", model.image_shape(), ", found ", images,
               " (channels, height, width)");
  });
  const std::vector<std::string> names = model.class_names();
  ModelInput input{.classes = names.empty() ? data.classes : names,
                   .labels = match_classes(data.classes, names, model.classes(), folder, ErrorKind::input),
                   .factor = {},
                   .offset = {}};
  if (names.empty())
    notes.push_back("the model has no names of its classes (id2label in config.json): class k of " + folder +
                    " is taken for its output k");
  if (!preprocessing) {
    notes.push_back(
        str("the model has no ", kPreprocessorFile, ": pixels are normalised by mean and deviation of ", folder));
    scale(data.mean, data.std, 1.0 / 255, data.channels, input);
    return input;
  }
  const Preprocessing& p = *preprocessing;
  for (const auto& [key, list] : {std::pair{"image_mean", &p.mean}, {"image_std", &p.std}})
    check(list->size() == 1 || std::ssize(*list) == data.channels, ErrorKind::input, [&, key = key, list = list] {
      return str("bad value for ", key, " in ", kPreprocessorFile, " of the model: expected a number for each of the ",
                 data.channels, " channels of its images, found ", list->size());
    });
  scale(p.mean, p.std, p.rescale, data.channels, input);
  if (p.sizing != Sizing{.filter = p.sizing.filter} && p.sizing != data.sizing_or_size())
    notes.push_back(str(kPreprocessorFile, " of the model asks for images ", describe(p.sizing), ", those in ", folder,
                        " are ", describe(data.sizing_or_size()),
                        ": scores may differ; braid prepare --images --like MODEL makes them so"));
  return input;
}

}  // namespace braid::models::vision
