#include "braid/tensor/io/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/file_system.h"

namespace braid::io {

namespace {
[[noreturn]] void cannot_write(const std::string& path, int64_t written, int cause) {
  fail(ErrorKind::output, str("cannot write ", path, " after ", written, " bytes: ", std::strerror(cause),
                              "; free some space or choose another place"));
}
}  // namespace

void make_shared_file(const std::string& path, int64_t bytes) {
  const int fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) cannot_write(path, 0, errno);
  int cause = uninterrupted([&] { return ::ftruncate(fd, bytes); }) == 0 ? 0 : errno;
  if (cause == 0 && bytes > 0 && uninterrupted([&] { return ::fallocate(fd, 0, 0, bytes); }) != 0 &&
      errno != EOPNOTSUPP)
    cause = errno;
  if (::close(fd) != 0 && cause == 0) cause = errno;
  if (cause == 0) return;
  ::unlink(path.c_str());
  cannot_write(path, 0, cause);
}

SharedFile::SharedFile(const std::string& path) : path_(path) {
  fd_ = open_file(path, O_WRONLY | O_CLOEXEC);
  struct stat info {};
  check(fd_ >= 0 && ::fstat(fd_, &info) == 0, ErrorKind::output, [&] {
    return "cannot write " + path + ": " + system_message() +
           "; check that its folder is one that all processes see and may write";
  });
  bytes_ = info.st_size;
}

SharedFile::~SharedFile() {
  if (fd_ >= 0) ::close(fd_);
}

void SharedFile::write(int64_t offset, const void* bytes, int64_t n) {
  check(fd_ >= 0 && offset >= 0 && n >= 0 && offset <= bytes_ - n, "shared_file",
        [&] { return "write outside of the file, or after commit(): " + path_; });
  share_ ^= crc32c_share(crc32c(bytes, n), bytes_ - offset - n);
  const int64_t put = write_fully(fd_, bytes, n, offset);
  written_ += put;
  if (put < n) cannot_write(path_, written_, errno);
}

void SharedFile::commit() {
  check(fd_ >= 0, "shared_file", [&] { return "commit of a file that is closed: " + path_; });
  if (uninterrupted([&] { return ::fsync(fd_); }) != 0) cannot_write(path_, written_, errno);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) cannot_write(path_, written_, errno);
}

}  // namespace braid::io
