#include "braid/models/data/vision/class_folder.h"

#include <algorithm>
#include <filesystem>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::vision {

namespace fs = std::filesystem;

namespace {

// Names without hidden files, in the order of their bytes.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : io::list_folder(folder))
    if (const std::string name = path.filename().string(); !name.starts_with(".")) names.push_back(name);
  return names;
}

}  // namespace

void read_class_folder(const std::string& folder, std::vector<std::string>& classes, const TakeImage& take,
                       BadImages& bad) {
  const std::vector<std::string> names = names_in(folder);
  check(!names.empty(), ErrorKind::input,
        [&] { return "no classes in " + folder + ": expected one folder of images for each class, found none"; });
  std::vector<std::string> strays, fresh, empty;
  for (const std::string& name : names) {
    const fs::path path = fs::path(folder) / name;
    if (!io::is_folder(path)) {
      strays.push_back(name);
    } else if (names_in(path).empty()) {
      empty.push_back(name);
    }
    if (!classes.empty() && std::ranges::count(classes, name) == 0) fresh.push_back(name);
  }
  const auto listed = [](const std::vector<std::string>& list) {
    return detail::preview(detail::join(list, ", "), 200) + (list.size() > 1 ? str(" (", list.size(), ")") : "");
  };
  check(strays.empty(), ErrorKind::input, [&] {
    return "files beside the classes in " + folder + ": expected one folder of images for each class, found " +
           listed(strays) + "; move them into the folder of their class";
  });
  check(fresh.empty(), ErrorKind::input, [&] {
    return "classes in " + folder + " that had no image before: expected some of " + listed(classes) + ", found " +
           listed(fresh);
  });
  check(empty.empty(), ErrorKind::input, [&] {
    return "classes without images in " + folder + ": expected PNG or JPEG files in each, found none in " +
           listed(empty);
  });
  if (classes.empty()) classes = names;
  for (const std::string& name : names) {
    const int64_t label = std::ranges::find(classes, name) - classes.begin();
    for (const std::string& file : names_in(fs::path(folder) / name)) {
      const std::string path = (fs::path(folder) / name / file).string();
      if (std::optional<Image> image = bad.read(path)) take(std::move(*image), label, path);
    }
  }
}

}  // namespace braid::models::vision
