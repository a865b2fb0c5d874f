#include "braid/tensor/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>

#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::io {
namespace {

constexpr size_t buffer_bytes = 1 << 18;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Renaming over a symbolic link would replace the link; the file it points to is what the user means.
std::string resolve_link(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(path, ignored)) return path;
  const auto target = std::filesystem::weakly_canonical(path, ignored);
  return ignored ? path : target.string();
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(resolve_link(path)) {
  static std::atomic<int> counter{0};
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored))
    fail(ErrorKind::output, "cannot write " + path_ + ": it is a folder; choose another name");
  temporary_ = path_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  // A leftover of this name is from a process that died; the names of a living process are unique.
  open(O_TRUNC);
}

AtomicFile::AtomicFile(const std::string& path, int64_t keep)
    : path_(path), temporary_(unfinished(path)), stays_(true), size_(keep) {
  open(0);
  if (::ftruncate(fd_, keep) != 0) give_up("cut");
}

void AtomicFile::open(int flags) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (fd_ < 0) {
    const std::string cause = system_message();
    temporary_.clear();
    fail(ErrorKind::output,
         "cannot write " + path_ + ": " + cause + "; check that its folder exists and may be written");
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty() && !stays_) ::unlink(temporary_.c_str());
}

void AtomicFile::give_up(const char* doing) {
  const std::string cause = system_message();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty() && !stays_) ::unlink(temporary_.c_str());
  temporary_.clear();
  fail(ErrorKind::output, std::string("cannot ") + doing + " " + path_ + " after " + std::to_string(size_) +
                              " bytes: " + cause + "; free some space or choose another place, what was there before" +
                              " is unchanged");
}

void AtomicFile::write_out(int64_t offset, const char* bytes, int64_t n) {
  if (write_fully(fd_, bytes, n, offset) < n) give_up("write");
}

void AtomicFile::flush() {
  write_out(size_ - static_cast<int64_t>(buffer_.size()), buffer_.data(), static_cast<int64_t>(buffer_.size()));
  buffer_.clear();
}

void AtomicFile::write(const void* bytes, int64_t n) {
  check(fd_ >= 0 && n >= 0, "atomic_file", [&] { return "write to a file that is closed: " + path_; });
  const auto* text = static_cast<const char*>(bytes);
  if (buffer_.size() + static_cast<size_t>(n) > buffer_bytes) flush();
  if (static_cast<size_t>(n) > buffer_bytes) {
    write_out(size_, text, n);
  } else if (n > 0) {
    buffer_.append(text, static_cast<size_t>(n));
  }
  size_ += n;
}

void AtomicFile::write_at(int64_t offset, const void* bytes, int64_t n) {
  check(fd_ >= 0 && offset >= 0 && n >= 0 && offset <= size_ - n, "atomic_file",
        [&] { return "write_at outside of what was written: " + path_; });
  flush();
  write_out(offset, static_cast<const char*>(bytes), n);
}

void AtomicFile::sync() {
  check(fd_ >= 0, "atomic_file", [&] { return "commit of a file that is closed: " + path_; });
  flush();
  if (::fsync(fd_) != 0) give_up("write");
}

void AtomicFile::commit() {
  sync();
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) give_up("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("rename the finished file to");
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace braid::io
