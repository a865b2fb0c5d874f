#include "braid/tensor/io/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "braid/tensor/io/path_status.h"

namespace braid::io {

namespace fs = std::filesystem;

std::string system_message() { return std::strerror(errno); }

void check_readable(const fs::path& folder) {
  check(!is_folder(folder) || ::faccessat(AT_FDCWD, folder.c_str(), R_OK | X_OK, AT_EACCESS) == 0, ErrorKind::input,
        [&] { return "cannot read the folder " + folder.string() + ": " + system_message() + "; check its rights"; });
}

int64_t write_fully(int descriptor, const void* bytes, int64_t n, int64_t offset) {
  int64_t done = 0;
  while (done < n) {
    const auto* rest = static_cast<const char*>(bytes) + done;
    const auto left = static_cast<size_t>(n - done);
    const ssize_t put = offset < 0 ? ::write(descriptor, rest, left) : ::pwrite(descriptor, rest, left, offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) break;
    done += put;
  }
  return done;
}

void make_folder(const fs::path& folder) {
  constexpr ErrorKind kind = ErrorKind::output;
  std::error_code error;
  std::vector<fs::path> made;
  for (fs::path at = folder; !at.empty() && !exists(at, kind); at = at.parent_path()) made.push_back(at);
  fs::create_directories(folder, error);
  if (is_folder(folder, kind)) {
    for (const fs::path& at : made) sync_folder(at.has_parent_path() ? at.parent_path() : fs::path("."));
    return;
  }
  check(!exists(folder, kind), ErrorKind::setting,
        [&] { return "cannot use " + folder.string() + ": expected a folder, found a file; choose another name"; });
  fail(ErrorKind::output, "cannot create folder " + folder.string() + ": " + error.message());
}

void sync_folder(const fs::path& folder) {
  const int fd = open_file(folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) return;
  const bool ok = fd >= 0 && (uninterrupted([&] { return ::fsync(fd); }) == 0 ||
                              errno == EINVAL);  // EINVAL: a file system without folder sync
  const int cause = errno;
  if (fd >= 0) ::close(fd);
  check(ok, ErrorKind::output, [&] {
    return "cannot synchronise the folder " + folder.string() + ": " + std::strerror(cause) + "; check the disk";
  });
}

void rename_path(const fs::path& from, const fs::path& to) {
  check(std::rename(from.c_str(), to.c_str()) == 0, ErrorKind::output, [&] {
    return "cannot rename " + from.string() + " to " + to.string() + ": " + system_message() + "; check the disk";
  });
}

void remove_path(const fs::path& path) {
  std::error_code error;
  bool again = true;  // an error of the disk may pass
  do fs::remove_all(path, error);
  while (error == std::errc::interrupted || (error && std::exchange(again, false)));
  check(!error, ErrorKind::output,
        [&] { return "cannot remove " + path.string() + ": " + error.message() + "; remove it by hand"; });
}

int open_file(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags, 0666); });
}

int open_locked(const std::string& path, int flags) {
  for (;;) {
    const int fd = open_file(path, flags);
    if (fd < 0) return -1;
    int result = uninterrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); });
    struct stat locked {
    }, named{};
    if (result == 0) result = ::fstat(fd, &locked);
    const bool there = result == 0 && uninterrupted([&] { return ::stat(path.c_str(), &named); }) == 0;
    if (there && locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) return fd;
    const int cause = errno;
    ::close(fd);
    errno = cause;
    if (result != 0 || (!there && cause != ENOENT)) return -1;
  }
}

int make_locked_folder(const fs::path& folder) {
  int lock = -1;
  do {  // again when its holder has renamed or removed it in between
    make_folder(folder);
    lock = open_locked(folder.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  } while (lock < 0 && errno == ENOENT);
  return lock;
}

}  // namespace braid::io
