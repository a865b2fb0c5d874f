// Preloaded into the real program (LD_PRELOAD): system calls on files fail as a test says, or are written down.
//
//   BRAID_FAULT="CALL PART PASS FAIL ERRNO"  of the calls of CALL (write, pwrite, fsync, fallocate, rename) on files
//   whose
//                                            path contains PART, the first PASS succeed and the next FAIL give ERRNO
//   BRAID_FSYNCS=FILE                        the path of each fsync becomes a line of FILE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

struct Fault {
  std::string call, part;
  int pass = 0, fail = 0, cause = 0;
};

const Fault& fault() {
  static const Fault instance = [] {
    Fault f;
    if (const char* text = std::getenv("BRAID_FAULT"))
      std::istringstream(text) >> f.call >> f.part >> f.pass >> f.fail >> f.cause;
    return f;
  }();
  return instance;
}

std::string path_of(int fd) {
  char path[4096];
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "";
}

bool fails(const std::string& path) {
  static std::atomic<int> calls = 0;
  const Fault& f = fault();
  if (path.find(f.part) == std::string::npos) return false;
  const int number = calls++;
  if (number < f.pass || number >= f.pass + f.fail) return false;
  errno = f.cause;
  return true;
}
bool fails_on(const char* call, int fd) { return fault().call == call && fails(path_of(fd)); }

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t n) {
  return fails_on("write", fd) ? -1 : ::syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  return fails_on("pwrite", fd) ? -1 : ::syscall(SYS_pwrite64, fd, bytes, n, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t n) {
  return fails_on("fallocate", fd) ? -1 : static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, n));
}

int fsync(int fd) {
  if (const char* file = std::getenv("BRAID_FSYNCS")) {
    const std::string line = path_of(fd) + "\n";
    const int out = ::open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::syscall(SYS_write, out, line.data(), line.size());
    ::close(out);
  }
  return fails_on("fsync", fd) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}

int rename(const char* from, const char* to) noexcept {
  if (fault().call == "rename" && fails(std::string(to))) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"
