#include "braid/models/data/prepare/input_files.h"

#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <set>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

// Adds the regular files below the folder, without hidden ones; links to files are followed, links to folders are not.
void add_files_below(const fs::path& folder, const std::string& exclude, std::vector<std::string>& files) {
  for (const fs::path& path : io::list_folder(folder)) {
    if (hidden(path)) continue;
    const auto found = io::path_status(path);  // none: a link to nothing
    if (found && S_ISREG(found->st_mode)) files.push_back(path.string());
    if (!found || !S_ISDIR(found->st_mode) || io::is_link(path)) continue;
    if (exclude.empty() || !io::is_same(path, exclude)) add_files_below(path, exclude, files);
  }
}

std::vector<std::string> files_below(const std::string& folder, const std::string& exclude) {
  std::vector<std::string> files;
  add_files_below(folder, exclude, files);
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const auto ends = [](const char*, int cause) { return cause != ENOENT && cause != ENOTDIR ? 1 : 0; };
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, ends, &found);
  const std::string cause = io::system_message();
  std::vector<std::string> paths;
  if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH)
    throw io::SystemError(ErrorKind::input, "cannot list the files of " + pattern + ": " + cause + "; check the disk");
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

void LeftOut::add(const std::string& path, int64_t bytes_of_file, const std::string& kind) {
  ++files;
  bytes += bytes_of_file;
  std::string end = fs::path(path).extension().string();
  for (char& c : end) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  ++kinds[!kind.empty() ? kind : bytes_of_file == 0 ? "empty" : end.size() > 1 ? end.substr(1) : "no ending"];
}

void LeftOut::add(const LeftOut& other) {
  files += other.files, bytes += other.bytes;
  for (const auto& [kind, count] : other.kinds) kinds[kind] += count;
}

std::string LeftOut::text() const {
  constexpr size_t shown = 6;
  std::vector<std::pair<int64_t, std::string>> largest;
  for (const auto& [kind, count] : kinds) largest.emplace_back(-count, kind);
  std::ranges::sort(largest);
  std::string list;
  int64_t others = 0;
  for (size_t i = 0; i < largest.size(); ++i) {
    if (i < shown)
      list += str(i == 0 ? "" : ", ", detail::preview(largest[i].second, 20), " ", -largest[i].first);
    else
      others -= largest[i].first;
  }
  if (others > 0) list += str(", others ", others);
  return str(files, files == 1 ? " file" : " files", " of ", detail::mebibytes(bytes), " (", list, ")");
}

InputList list_inputs(const std::vector<std::string>& inputs, const std::string& exclude,
                      const std::vector<std::string>& exclude_files) {
  std::set<fs::path> excluded;
  for (const std::string& path : exclude_files) excluded.insert(io::real_path(path));
  InputList list;
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    const bool pattern = !io::exists(input) && input.find_first_of("*?[") != std::string::npos;
    const std::vector<std::string> found = pattern ? matches(input) : std::vector<std::string>{input};
    paths.insert(paths.end(), found.begin(), found.end());
  }
  std::set<std::pair<dev_t, ino_t>> known;  // of all inputs
  for (const std::string& input : paths) {
    const auto status = io::path_status(input);
    check(status.has_value(), ErrorKind::input,
          [&] { return "cannot read " + input + ": there is no such file or folder; check the path"; });
    const bool folder = S_ISDIR(status->st_mode);
    std::vector<std::string> files = folder ? files_below(input, exclude) : std::vector<std::string>{input};
    check(!files.empty(), ErrorKind::input,
          [&] { return "cannot read " + input + ": the folder holds no file; give a folder with text files"; });
    std::erase_if(files, [&](const std::string& path) {
      const bool out = folder && !excluded.empty() && excluded.contains(io::real_path(path));
      if (out) list.notes.push_back(path + " is for validation: left out of " + input);
      return out;
    });
    std::map<std::pair<dev_t, ino_t>, std::string> here;  // of this input, with the name that is read
    for (const std::string& path : files) {
      check_format(path, !folder);
      const auto file = io::path_status(path);
      check(file.has_value(), ErrorKind::input,
            [&] { return "cannot read " + path + ": it went away; check the path"; });
      const auto [first, is_new] = here.emplace(std::pair{file->st_dev, file->st_ino}, path);
      if (!is_new) {
        list.notes.push_back(path + " is the same file as " + first->second + ": left out");
        list.left_out.add(path, file->st_size, "link");
        continue;
      }
      if (paths.size() > 1 && !known.emplace(file->st_dev, file->st_ino).second)
        list.notes.push_back(path + " is given twice: its text is used as often");
      list.files.push_back({path, static_cast<int64_t>(file->st_size), !folder});
    }
  }
  return list;
}

}  // namespace braid::models::text
