#include "braid/tensor/io/path_status.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace braid::io {

namespace fs = std::filesystem;

namespace {

// A name that is too long is that of no file: what is looked up may be a text, such as a list of token ids.
bool is_absence(int cause) { return cause == ENOENT || cause == ENOTDIR || cause == ENAMETOOLONG; }

using StatCall = int (*)(const char*, struct stat*);
std::optional<struct stat> status_by(StatCall call, const fs::path& path, ErrorKind kind) {
  struct stat found {};
  if (uninterrupted([&] { return call(path.c_str(), &found); }) == 0) return found;
  if (is_absence(errno)) return std::nullopt;
  throw SystemError(kind,
                    "cannot look up " + path.string() + ": " + system_message() + "; check the path and the disk");
}

// 0, or the cause of the failure.
int read_names(const fs::path& folder, std::vector<std::string>& names) {
  DIR* open = ::opendir(folder.c_str());
  if (!open) return errno;
  errno = 0;
  while (const dirent* entry = ::readdir(open)) {
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int cause = errno;
  ::closedir(open);
  return cause;
}

void add_files_below(const fs::path& folder, ErrorKind kind, std::vector<fs::path>& files) {
  for (const fs::path& path : list_folder(folder, kind)) {
    if (is_file(path, kind))
      files.push_back(path);
    else if (is_folder(path, kind) && !is_link(path, kind))
      add_files_below(path, kind, files);
  }
}

}  // namespace

std::optional<struct stat> path_status(const fs::path& path, ErrorKind kind) { return status_by(::stat, path, kind); }

bool exists(const fs::path& path, ErrorKind kind) { return path_status(path, kind).has_value(); }

bool is_file(const fs::path& path, ErrorKind kind) {
  const auto found = path_status(path, kind);
  return found && S_ISREG(found->st_mode);
}

bool is_folder(const fs::path& path, ErrorKind kind) {
  const auto found = path_status(path, kind);
  return found && S_ISDIR(found->st_mode);
}

bool is_link(const fs::path& path, ErrorKind kind) {
  const auto found = status_by(::lstat, path, kind);
  return found && S_ISLNK(found->st_mode);
}

bool is_same(const fs::path& a, const fs::path& b, ErrorKind kind) {
  const auto one = path_status(a, kind), other = path_status(b, kind);
  return one && other && one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

fs::path real_path(const fs::path& path, ErrorKind kind) {
  fs::path above;
  for (const fs::path& part : path) {  // weakly_canonical strikes out MISSING/.., which leads nowhere
    check(part != ".." || above.empty() || is_folder(above, kind), kind,
          [&] { return "cannot look up " + path.string() + ": " + above.string() + " is no folder; check the path"; });
    above /= part;
  }
  std::error_code error;
  fs::path real = fs::weakly_canonical(path, error);
  if (error)
    throw SystemError(kind,
                      "cannot look up " + path.string() + ": " + error.message() + "; check the path and the disk");
  return real;
}

std::vector<fs::path> list_folder(const fs::path& folder, ErrorKind kind) {
  std::vector<std::string> names;
  int cause = 0;
  do names.clear(), cause = read_names(folder, names);
  while (cause == EINTR);
  if (is_absence(cause)) return {};
  if (cause != 0)
    throw SystemError(kind, str("cannot list the folder ", folder.string(), ": ", std::strerror(cause),
                                "; check its rights and the disk"));
  std::sort(names.begin(), names.end());
  std::vector<fs::path> paths;
  for (const std::string& name : names) paths.push_back(folder / name);
  return paths;
}

std::vector<fs::path> files_below(const fs::path& folder, ErrorKind kind) {
  std::vector<fs::path> files;
  add_files_below(folder, kind, files);
  return files;
}

}  // namespace braid::io
