#include "braid/models/data/vision/class_folder.h"

#include <algorithm>
#include <filesystem>

#include "braid/models/data/vision/decode.h"
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

void read_class_folder(const std::string& folder, std::vector<std::string>& classes, const TakeImage& take) {
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names)
    check(io::is_folder(fs::path(folder) / name), ErrorKind::input, [&] {
      return (fs::path(folder) / name).string() + " is no folder: expected in " + folder +
             " one folder of images for each class; move the file into the folder of its class";
    });
  check(!names.empty(), ErrorKind::input,
        [&] { return "no classes in " + folder + ": expected one folder of images for each class, found none"; });
  if (classes.empty()) classes = names;
  for (const std::string& name : names) {
    const auto at = std::ranges::find(classes, name);
    check(at != classes.end(), ErrorKind::input, [&] {
      return "a class without images before: expected one of " + detail::preview(detail::join(classes, ", "), 200) +
             ", found " + (fs::path(folder) / name).string();
    });
    const std::vector<std::string> files = names_in(fs::path(folder) / name);
    check(!files.empty(), ErrorKind::input, [&] {
      return "no images in " + (fs::path(folder) / name).string() + ": expected PNG or JPEG files of that class";
    });
    for (const std::string& file : files) {
      const std::string path = (fs::path(folder) / name / file).string();
      take(read_image(path), at - classes.begin(), path);
    }
  }
}

}  // namespace braid::models::vision
