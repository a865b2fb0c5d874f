#include "braid/models/data/prepare/input_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

// Regular files below the folder, without hidden ones; links to files are followed, links to folders are not.
std::vector<std::string> files_below(const std::string& folder, const std::string& exclude) {
  std::vector<std::string> files;
  std::error_code error;
  std::string at = folder;  // what the iterator may enter next
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    at = it->path().string();
    std::error_code ignored;  // a dangling link is no file
    const bool left_out = !exclude.empty() && it->is_directory(ignored) && fs::equivalent(it->path(), exclude, ignored);
    if (left_out || hidden(it->path())) {
      if (it->is_directory(ignored)) it.disable_recursion_pending();
      continue;
    }
    if (it->is_regular_file(ignored)) files.push_back(it->path().string());
  }
  check(!error, ErrorKind::input, [&] { return "cannot list the folder " + at + ": " + error.message(); });
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths;
  if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  check(!paths.empty(), ErrorKind::input,
        [&] { return "cannot read " + pattern + ": no file matches the pattern; check the path"; });
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Formats of data sets that would pass as bytes: rejected by name. A folder is searched for columns only, because its
// other files are recognised by their content.
void check_format(const std::string& path, bool named) {
  const std::string name = without_compression(path);
  for (const char* end : {".parquet", ".arrow"})
    if (ends_in(name, end))
      fail(ErrorKind::input,
           "cannot read " + path + ": expected text, .jsonl, .gz or .zst, found a file of columns (" + (end + 1) +
               "); convert it, for example in Python: import pandas; pandas.read_" +
               (end == std::string(".parquet") ? "parquet" : "feather") +
               "('a').to_json('a.jsonl.gz', orient='records', lines=True)" +
               (named ? "" : "; or name the other files of the folder with a pattern such as 'folder/*.jsonl'"));
  if (!named) return;
  for (const char* end : {".bz2", ".xz", ".lzma", ".lz4", ".zip", ".7z", ".rar", ".tar", ".tgz"})
    if (ends_in(name, end))
      fail(ErrorKind::input, "cannot read " + path + ": expected text, .jsonl, .gz or .zst, found " + end +
                                 "; unpack it, or compress its files with gzip or zstd");
}

}  // namespace

InputList list_inputs(const std::vector<std::string>& inputs, const std::string& exclude,
                      const std::vector<std::string>& exclude_files) {
  std::error_code ignored;
  std::set<fs::path> excluded;
  for (const std::string& path : exclude_files) excluded.insert(fs::weakly_canonical(path, ignored));
  InputList list;
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    const bool pattern = !fs::exists(input, ignored) && input.find_first_of("*?[") != std::string::npos;
    const std::vector<std::string> found = pattern ? matches(input) : std::vector<std::string>{input};
    paths.insert(paths.end(), found.begin(), found.end());
  }
  std::set<std::pair<dev_t, ino_t>> known;
  for (const std::string& input : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    check(fs::exists(status), ErrorKind::input,
          [&] { return "cannot read " + input + ": there is no such file or folder; check the path"; });
    const bool folder = fs::is_directory(status);
    std::vector<std::string> files = folder ? files_below(input, exclude) : std::vector<std::string>{input};
    check(!files.empty(), ErrorKind::input,
          [&] { return "cannot read " + input + ": the folder holds no file; give a folder with text files"; });
    std::erase_if(files, [&](const std::string& path) {
      const bool out = folder && !excluded.empty() && excluded.contains(fs::weakly_canonical(path, ignored));
      if (out) list.notes.push_back(path + " is for validation: left out of " + input);
      return out;
    });
    for (const std::string& path : files) {
      check_format(path, !folder);
      struct stat file {};
      const bool readable = ::stat(path.c_str(), &file) == 0;
      check(readable, ErrorKind::input, [&] { return "cannot read " + path + ": it went away; check the path"; });
      if (paths.size() > 1 && !known.emplace(file.st_dev, file.st_ino).second)
        list.notes.push_back(path + " is given twice: its text is used as often");
      list.files.push_back({path, static_cast<int64_t>(file.st_size), !folder});
    }
  }
  return list;
}

}  // namespace braid::models::text
