#include "braid/tensor/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/path_status.h"

namespace braid::io {
namespace {

constexpr size_t buffer_bytes = 1 << 18;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// N of /dev/fd/N and of what links to it, such as /dev/stdout: a file that this process has open, which may have no
// name. -1: the link leads to a name.
int open_descriptor(const std::filesystem::path& link) {
  const auto real = [](const std::string& folder) { return real_path(folder, ErrorKind::output); };
  const bool is_open = real(folder_of(link.string())) == real("/proc/self/fd");
  return is_open ? std::atoi(link.filename().c_str()) : -1;
}

// Renaming over a symbolic link would replace the link; the file it points to, now or once it is there, is what the
// user means.
std::string resolve_link(const std::string& path) {
  constexpr int max_links = 40;  // links that follow each other, as in Linux
  std::filesystem::path at = path;
  std::error_code error;
  for (int i = 0; i < max_links && is_link(at, ErrorKind::output) && open_descriptor(at) < 0; ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(at, error);
    if (error) return path;
    at = at.parent_path() / target;  // the target alone where it is absolute
  }
  return at.string();
}

// A pipe, a device or a socket: what is written goes through it, and nothing may be renamed over it.
bool passes_through(const std::string& path) {
  const auto status = path_status(path, ErrorKind::output);
  return status && !S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode);
}

// Whether bytes may go to the open file `descriptor`, else to the file of the name; if not, the cause in errno.
bool may_be_written(const std::string& path, int descriptor) {
  if (descriptor < 0) return ::access(path.c_str(), W_OK) == 0;
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0) errno = EBADF;  // what a write to one that is open for reading gives
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

constexpr size_t longest_name = 255, random_digits = 8;

// "NAME.tmp-", with which the temporaries of a file begin; a long name is cut, so that "PID-RANDOM" fits behind it.
std::string temporary_head(const std::string& name) {
  constexpr size_t longest_tail = std::string_view(".tmp-2147483647-").size() + random_digits;
  const bool cut = name.size() <= longest_name && name.size() > longest_name - longest_tail;
  return name.substr(0, cut ? longest_name - longest_tail : name.size()) + ".tmp-";
}

// "NAME.tmp-PID-RANDOM" beside the file: nobody can lay a link there before.
std::string temporary_name(const std::string& path) {
  uint32_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = static_cast<uint32_t>(::time(nullptr));
  const std::string name = std::filesystem::path(path).filename().string();
  return path.substr(0, path.size() - name.size()) +
         str(temporary_head(name), ::getpid(), "-", detail::hex(random, random_digits));
}

// Whether the file `name` may be a temporary of the file `of`.
bool is_temporary(const std::string& name, const std::string& of) {
  const std::string head = temporary_head(of);
  if (!name.starts_with(head)) return false;
  const size_t dash = name.find_first_not_of("0123456789", head.size());
  return dash != std::string::npos && dash > head.size() && name[dash] == '-' &&
         name.size() == dash + 1 + random_digits &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  const std::string target = resolve_link(path);
  if (is_link(target, ErrorKind::output)) descriptor_ = open_descriptor(target);
  through_ = descriptor_ >= 0 || passes_through(path);
  if (through_) {
    if (!may_be_written(path_, descriptor_)) cannot_open();
    return;  // opened by the first flush(): a pipe has a reader for each time that it is opened
  }
  path_ = target;
  if (is_folder(path_, ErrorKind::output))
    fail(ErrorKind::output, "cannot write " + path_ + ": it is a folder; choose another name");
  remove_leftovers(path_);
  open_temporary();
}

// A descriptor is duplicated: opened anew, a file would be written from its beginning.
void AtomicFile::open_through() {
  fd_ = descriptor_ < 0 ? open_file(path_, O_WRONLY | O_CLOEXEC) : ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (fd_ < 0) cannot_open();
}

void AtomicFile::open_temporary() {
  const auto old = path_status(path_, ErrorKind::output);
  for (;;) {
    temporary_ = temporary_name(path_);
    const int fd = open_file(temporary_, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (fd < 0 && errno == EEXIST) continue;
    fd_ = fd;
    if (fd_ < 0) cannot_open();
    struct stat info {};
    // Other failures: a file system without locks.
    const bool taken = uninterrupted([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK;
    if (!taken && (::fstat(fd_, &info) != 0 || info.st_nlink > 0)) break;
    ::close(fd_);  // another process took it for a leftover, in the moment before it was locked
  }
  if (!old) return;
  rights_ = old->st_mode & 0777;
  ::fchmod(fd_, *rights_ | S_IWUSR);
}

void AtomicFile::cannot_open() {
  const std::string cause = system_message();
  temporary_.clear();
  fail(ErrorKind::output, "cannot write " + path_ + ": " + cause + "; " +
                              (descriptor_ < 0 ? "check that its folder exists and may be written"
                                               : "open the file for writing, or give its name"));
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
  if (through_ && fd_ < 0) open_through();
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
  if (!through_) {
    if (rights_) ::fchmod(fd_, *rights_);
    if (uninterrupted([&] { return ::fsync(fd_); }) != 0) give_up("write", size_);
    // While it is locked; closing it tells nothing new after fsync.
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("rename the finished file to", size_);
    temporary_.clear();
  }
  const int fd = fd_;
  fd_ = -1;
  closed_ = true;
  if (::close(fd) != 0 && through_) give_up("write", size_);
  if (!through_) sync_folder(folder_of(path_));
}

void remove_leftovers(const std::string& path) {
  try {
    const std::filesystem::path target = path;
    for (const std::filesystem::path& entry : list_folder(folder_of(path), ErrorKind::output)) {
      if (!is_temporary(entry.filename().string(), target.filename().string())) continue;
      constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
      int fd = open_file(entry.string(), O_WRONLY | flags);
      if (fd < 0 && errno == EACCES) fd = open_file(entry.string(), O_RDONLY | flags);  // complete, and read-only
      if (fd < 0) continue;
      if (uninterrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0) ::unlink(entry.c_str());
      ::close(fd);
    }
  } catch (const Error&) {  // they only take space
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace braid::io
