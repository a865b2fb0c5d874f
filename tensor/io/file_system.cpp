#include "braid/tensor/io/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "braid/tensor/error.h"

namespace braid::io {

std::string system_message() { return std::strerror(errno); }

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

void make_folder(const std::filesystem::path& folder) {
  std::error_code error, ignored;
  std::filesystem::create_directories(folder, error);
  if (std::filesystem::is_directory(folder, ignored)) return;
  check(!std::filesystem::exists(folder, ignored), ErrorKind::setting,
        [&] { return "cannot use " + folder.string() + ": expected a folder, found a file; choose another name"; });
  fail(ErrorKind::output, "cannot create folder " + folder.string() + ": " + error.message());
}

void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool ok = fd >= 0 && (::fsync(fd) == 0 || errno == EINVAL);  // EINVAL: a file system without folder sync
  const std::string cause = ok ? "" : system_message();
  if (fd >= 0) ::close(fd);
  check(ok, ErrorKind::output,
        [&] { return "cannot synchronise the folder " + folder.string() + ": " + cause + "; check the disk"; });
}

}  // namespace braid::io
