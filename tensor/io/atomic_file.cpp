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

// Renaming over a symbolic link would replace the link; the file it points to, now or once it is there, is what the
// user means.
std::string resolve_link(const std::string& path) {
  constexpr int max_links = 40;  // links that follow each other, as in Linux
  std::filesystem::path at = path;
  std::error_code error;
  for (int i = 0; i < max_links && std::filesystem::is_symlink(at, error); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(at, error);
    if (error) return path;
    at = at.parent_path() / target;  // the target alone where it is absolute
  }
  return at.string();
}

// A pipe, a device or a socket: what is written goes through it, and nothing may be renamed over it.
bool passes_through(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), through_(passes_through(path)) {
  static std::atomic<int> counter{0};
  if (through_) {
    if (::access(path_.c_str(), W_OK) != 0) cannot_open();
    return;  // opened by the first flush(): a pipe has a reader for each time that it is opened
  }
  path_ = resolve_link(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored))
    fail(ErrorKind::output, "cannot write " + path_ + ": it is a folder; choose another name");
  temporary_ = str(path_, ".tmp-", ::getpid(), "-", counter++);
  // A leftover of this name is from a process that died; the names of a living process are unique.
  open(temporary_, O_CREAT | O_TRUNC);
}

void AtomicFile::open(const std::string& name, int flags) {
  fd_ = ::open(name.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (fd_ < 0) cannot_open();
}

void AtomicFile::cannot_open() {
  const std::string cause = system_message();
  temporary_.clear();
  fail(ErrorKind::output, "cannot write " + path_ + ": " + cause + "; check that its folder exists and may be written");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::give_up(const char* doing, int64_t after) {
  const std::string cause = system_message();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  closed_ = true;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  fail(ErrorKind::output,
       str("cannot ", doing, " ", path_, " after ", after, " bytes: ", cause,
           "; free some space or choose another place", through_ ? "" : ", what was there before is unchanged"));
}

void AtomicFile::write_out(int64_t offset, const char* bytes, int64_t n) {
  const int64_t done = write_fully(fd_, bytes, n, through_ ? -1 : offset);
  if (done < n) give_up("write", offset + done);
}

void AtomicFile::flush() {
  if (through_ && fd_ < 0) open(path_, 0);
  write_out(size_ - static_cast<int64_t>(buffer_.size()), buffer_.data(), static_cast<int64_t>(buffer_.size()));
  buffer_.clear();
}

void AtomicFile::write(const void* bytes, int64_t n) {
  check(!closed_ && n >= 0, "atomic_file", [&] { return "write to a file that is closed: " + path_; });
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
  check(!closed_ && offset >= 0 && n >= 0 && offset <= size_ - n, "atomic_file",
        [&] { return "write_at outside of what was written: " + path_; });
  if (through_)
    fail(ErrorKind::output, "cannot write " + path_ + ": it is no file, and what is written there cannot be changed " +
                                "afterwards; choose another name");
  flush();
  write_out(offset, static_cast<const char*>(bytes), n);
}

void AtomicFile::commit() {
  check(!closed_, "atomic_file", [&] { return "commit of a file that is closed: " + path_; });
  flush();
  if (!through_ && ::fsync(fd_) != 0) give_up("write", size_);
  const int fd = fd_;
  fd_ = -1;
  closed_ = true;
  if (::close(fd) != 0) give_up("write", size_);
  if (through_) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("rename the finished file to", size_);
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace braid::io
