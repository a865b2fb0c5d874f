#include "braid/tensor/io/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "braid/tensor/error.h"

namespace braid::io {

namespace fs = std::filesystem;

namespace {
// 0, or the cause of the failure.
int try_sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool ok = fd >= 0 && (::fsync(fd) == 0 || errno == EINVAL);  // EINVAL: a file system without folder sync
  const int cause = ok ? 0 : errno;
  if (fd >= 0) ::close(fd);
  return cause;
}

void check_synced(int cause, const fs::path& folder) {
  check(cause == 0, ErrorKind::output, [&] {
    return "cannot synchronise the folder " + folder.string() + ": " + std::strerror(cause) + "; check the disk";
  });
}
}  // namespace

std::string system_message() { return std::strerror(errno); }

void check_readable(const fs::path& folder) {
  std::error_code none;
  check(!fs::is_directory(folder, none) || ::faccessat(AT_FDCWD, folder.c_str(), R_OK | X_OK, AT_EACCESS) == 0,
        ErrorKind::input,
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
  std::error_code error, ignored;
  std::vector<fs::path> made;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, ignored); at = at.parent_path()) made.push_back(at);
  fs::create_directories(folder, error);
  if (fs::is_directory(folder, ignored)) {
    for (const fs::path& at : made) {
      const fs::path parent = at.has_parent_path() ? at.parent_path() : fs::path(".");
      const int cause = try_sync_folder(parent);
      if (cause != EACCES) check_synced(cause, parent);  // EACCES: may be entered but not read, so not synced either
    }
    return;
  }
  check(!fs::exists(folder, ignored), ErrorKind::setting,
        [&] { return "cannot use " + folder.string() + ": expected a folder, found a file; choose another name"; });
  fail(ErrorKind::output, "cannot create folder " + folder.string() + ": " + error.message());
}

void sync_folder(const fs::path& folder) { check_synced(try_sync_folder(folder), folder); }

int open_locked(const std::string& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags, 0666);
    if (fd < 0) return -1;
    struct stat locked {
    }, named{};
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || ::fstat(fd, &locked) != 0) {
      const int cause = errno;
      ::close(fd);
      errno = cause;
      return -1;
    }
    if (::stat(path.c_str(), &named) == 0 && locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) return fd;
    ::close(fd);
  }
}

}  // namespace braid::io
