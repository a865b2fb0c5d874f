#include "braid/tensor/io/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::io {

void fail_input(const std::string& what, const std::string& path, int64_t byte, const std::string& expected,
                const std::string& found, const std::string& advice) {
  std::string text = what + " in " + path;
  if (byte >= 0) text += str(" at byte ", byte);
  text += ": expected " + expected + ", found " + found;
  if (!advice.empty()) text += "; " + advice;
  braid::fail(ErrorKind::input, text);
}

Reader::Reader(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; regular files ignore it.
  fd_ = open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    const std::string text = "cannot open " + path + ": " + system_message() + "; check the path";
    if (missing) braid::fail(ErrorKind::input, text);
    throw SystemError(ErrorKind::input, text);
  }
  struct stat info {};
  std::string problem;
  if (::fstat(fd_, &info) != 0) {
    problem = system_message();
    ::close(fd_);
    throw SystemError(ErrorKind::input, "cannot read " + path + ": " + problem + "; check the disk");
  }
  if (S_ISDIR(info.st_mode))
    problem = "expected a file, found a folder";
  else if (!S_ISREG(info.st_mode))
    problem = "expected a file, found a device or pipe";
  if (!problem.empty()) {
    ::close(fd_);
    braid::fail(ErrorKind::input, "cannot read " + path + ": " + problem);
  }
  size_ = info.st_size;
}

Reader::Reader(std::span<const std::byte> memory, std::string name)
    : path_(std::move(name)), memory_(memory.data()), size_(static_cast<int64_t>(memory.size())) {}

Reader::Reader(Reader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      position_(std::exchange(other.position_, 0)) {}

Reader::~Reader() {
  if (fd_ >= 0) ::close(fd_);
}

void Reader::fail(const std::string& what, int64_t byte, const std::string& expected, const std::string& found,
                  const std::string& advice) const {
  fail_input(what, path_, byte, expected, found, advice);
}

void Reader::seek(int64_t position) {
  if (position < 0 || position > size_)
    fail("cannot seek", position, str("a position up to ", size_), std::to_string(position),
         "the file is truncated or damaged");
  position_ = position;
}

void Reader::read_at(int64_t offset, void* into, int64_t n) const {
  if (offset < 0 || n < 0 || offset > size_ || n > size_ - offset)
    fail("cannot read", offset, str(n, " bytes"),
         str(std::clamp<int64_t>(size_ - offset, 0, size_), " before the end of the file"),
         "the file is truncated or damaged");
  if (fd_ < 0) {
    if (n > 0) std::memcpy(into, memory_ + offset, static_cast<size_t>(n));
    return;
  }
  auto* out = static_cast<char*>(into);
  int64_t done = 0;
  while (done < n) {
    const ssize_t got = ::pread(fd_, out + done, static_cast<size_t>(n - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw SystemError(ErrorKind::input, str("cannot read ", path_, " at byte ", offset + done, ": ", system_message(),
                                              "; check the disk"));
    if (got == 0)  // shorter than when it was opened
      fail("cannot read", offset + done, str(n - done, " more bytes"), "the end of the file",
           "something truncated it while it was being read");
    done += got;
  }
}

void Reader::read(void* into, int64_t n) {
  read_at(position_, into, n);
  position_ += n;
}

int64_t Reader::read_some(void* into, int64_t n) {
  n = std::min(n, remaining());
  read(into, n);
  return n;
}

std::string Reader::read_string(int64_t n) {
  if (n < 0 || n > remaining())
    fail("cannot read", position_, str(n, " bytes"), str(remaining(), " before the end"),
         "the file is truncated or damaged");
  std::string text(static_cast<size_t>(n), '\0');
  read(text.data(), n);
  return text;
}

std::string read_text_file(const std::string& path, int64_t max_bytes) {
  const auto check_size = [&](int64_t size, const std::string& found) {
    if (size > max_bytes)
      fail_input("the file is too large", path, -1, str("at most ", max_bytes, " bytes"), found,
                 "check that it is the right file");
  };
  if (const auto found = path_status(path); found && S_ISFIFO(found->st_mode)) {  // its size is known at its end only
    std::ifstream pipe(path);
    std::string text;
    for (char c; pipe.get(c); check_size(std::ssize(text), "more")) text += c;
    return text;
  }
  Reader reader(path);
  check_size(reader.size(), std::to_string(reader.size()));
  return reader.read_string(reader.size());
}

}  // namespace braid::io
