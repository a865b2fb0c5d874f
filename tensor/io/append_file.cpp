#include "braid/tensor/io/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::io {

static void check_output(bool ok, const char* doing, const std::string& path) {
  check(ok, ErrorKind::output, [&] { return std::string("cannot ") + doing + " " + path + ": " + system_message(); });
}

AppendFile::AppendFile(const std::string& path, int64_t keep) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  struct stat info {};
  check_output(fd_ >= 0 && ::fstat(fd_, &info) == 0, "write", path_);
  check_output(info.st_size <= keep || ::ftruncate(fd_, keep) == 0, "shorten", path_);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::append(std::string_view text) {
  const auto n = static_cast<int64_t>(text.size());
  check_output(write_fully(fd_, text.data(), n, -1) == n, "write", path_);
}

void AppendFile::sync() { check_output(::fsync(fd_) == 0, "write", path_); }

}  // namespace braid::io
