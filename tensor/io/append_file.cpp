#include "braid/tensor/io/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"
#include "braid/tensor/io/path_status.h"

namespace braid::io {

static void check_output(bool ok, const char* doing, const std::string& path) {
  check(ok, ErrorKind::output, [&] { return str("cannot ", doing, " ", path, ": ", system_message()); });
}

AppendFile::AppendFile(const std::string& path, int64_t keep) : path_(path) {
  // O_NONBLOCK for the opening alone: it must not wait for the reader of a named pipe.
  fd_ = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  struct stat info {};
  check_output(fd_ >= 0 && ::fcntl(fd_, F_SETFL, O_APPEND) == 0 && ::fstat(fd_, &info) == 0, "write", path_);
  check_output(info.st_size <= keep || uninterrupted([&] { return ::ftruncate(fd_, keep); }) == 0, "shorten", path_);
}

AppendFile::~AppendFile() {
  if (fd_ < 0) return;
  write_fully(fd_, kept_.data(), static_cast<int64_t>(kept_.size()), -1);
  ::close(fd_);
}

void AppendFile::follow(std::string head) {
  follows_ = true;
  head_ = std::move(head);
}

void AppendFile::reopen_if_moved() {
  struct stat open {};
  const std::optional<struct stat> named = path_status(path_, ErrorKind::output);
  check_output(::fstat(fd_, &open) == 0, "write", path_);
  const bool moved = !named || named->st_ino != open.st_ino || named->st_dev != open.st_dev;
  if (moved) {
    AppendFile other(path_);
    std::swap(fd_, other.fd_);
    check_output(::fstat(fd_, &open) == 0, "write", path_);
  }
  const bool is_new = S_ISREG(open.st_mode) && open.st_size == 0;
  if (moved || is_new) kept_.insert(0, std::exchange(begun_, ""));
  if (is_new && !kept_.starts_with(head_)) kept_.insert(0, head_);
}

void AppendFile::append(std::string_view text) {
  kept_ += text;
  if (follows_) reopen_if_moved();
  flush();
}

void AppendFile::flush() {
  const auto n = static_cast<int64_t>(kept_.size());
  const int64_t written = write_fully(fd_, kept_.data(), n, -1);
  const int cause = errno;
  begun_.append(kept_, 0, static_cast<size_t>(written));
  begun_.erase(0, written < n ? begun_.rfind('\n') + 1 : std::string::npos);  // npos + 1 is 0
  kept_.erase(0, static_cast<size_t>(written));
  errno = cause;
  check_output(kept_.empty(), "write", path_);
}

std::function<void()> AppendFile::sync_later() {
  flush();
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  check_output(copy >= 0, "write", path_);
  const std::shared_ptr<void> end(nullptr, [copy](void*) { ::close(copy); });
  return [end, copy, path = path_] {
    check_output(uninterrupted([&] { return ::fsync(copy); }) == 0 || errno == EINVAL,  // EINVAL: a pipe or device
                 "write", path);
  };
}

}  // namespace braid::io
