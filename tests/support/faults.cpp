// Preloaded into the real program (LD_PRELOAD): system calls on files fail as a test says, or are written down.
//
//   BRAID_FAULT="CALL PART PASS FAIL ERRNO"  calls of CALL on files whose path contains PART: the first PASS succeed,
//                                            the next FAIL give ERRNO; of -9 the process is killed, of 0
//                                            they wait half a second and succeed. CALL: write, pwrite,
//                                            pread, fsync, fallocate, ftruncate, flock, rename, link, open, stat,
//                                            readdir, unlinkat (below a folder that is removed), remove; or
//                                            mmap with PART anonymous
//   BRAID_FSYNCS=FILE                        the path of each fsync becomes a line of FILE
//   BRAID_FREE=BYTES                         what every disk has free
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

// Without memory from the heap, C++ objects or their guards: a sanitizer calls some of these functions before it is
// ready for any of that, the address sanitizer even before there is an environment.
struct Fault {
  char call[32], part[256];
  int pass, fail, cause;
};

// The next word of the text, which may be null.
template <size_t N>
void word(const char*& text, char (&into)[N]) {
  size_t n = 0;
  while (text && *text == ' ') ++text;
  for (; text && *text != 0 && *text != ' ' && n + 1 < N; ++text) into[n++] = *text;
}

const Fault& fault() {
  static Fault none, instance;
  static bool read = false;  // by the first call with an environment, while there is one thread
  if (!environ) return none;
  if (!read) {
    const char* text = std::getenv("BRAID_FAULT");
    word(text, instance.call);
    word(text, instance.part);
    for (int* number : {&instance.pass, &instance.fail, &instance.cause}) {
      char digits[16] = {};
      word(text, digits);
      *number = std::atoi(digits);
    }
    read = true;
  }
  return instance;
}

struct Path {
  char text[4096] = {};
  explicit Path(int fd) {
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = ::readlink(link, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
  }
};

bool fails(const char* path) {
  static std::atomic<int> calls;
  const Fault& f = fault();
  if (!std::strstr(path, f.part)) return false;
  const int number = calls++;
  if (number < f.pass || number >= f.pass + f.fail) return false;
  if (f.cause < 0) ::kill(::getpid(), -f.cause);
  if (f.cause == 0) return ::usleep(500000) != 0;
  errno = f.cause;
  return true;
}
bool is(const char* call) { return std::strcmp(fault().call, call) == 0; }
bool fails_at(const char* call, const char* path) { return is(call) && fails(path); }
bool fails_on(const char* call, int fd) { return is(call) && fails(Path(fd).text); }

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t n) {
  return fails_on("write", fd) ? -1 : ::syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  return fails_on("pwrite", fd) ? -1 : ::syscall(SYS_pwrite64, fd, bytes, n, offset);
}

ssize_t pread(int fd, void* bytes, size_t n, off_t offset) {
  return fails_on("pread", fd) ? -1 : ::syscall(SYS_pread64, fd, bytes, n, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t n) {
  return fails_on("fallocate", fd) ? -1 : static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, n));
}

int ftruncate(int fd, off_t length) noexcept {
  return fails_on("ftruncate", fd) ? -1 : static_cast<int>(::syscall(SYS_ftruncate, fd, length));
}

int flock(int fd, int operation) noexcept {
  return fails_on("flock", fd) ? -1 : static_cast<int>(::syscall(SYS_flock, fd, operation));
}

int fsync(int fd) {
  if (const char* file = std::getenv("BRAID_FSYNCS")) {
    const Path path(fd);
    const int out = ::open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::dprintf(out, "%s\n", path.text);
    ::close(out);
  }
  return fails_on("fsync", fd) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}

int rename(const char* from, const char* to) noexcept {
  if (fails_at("rename", to)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int link(const char* from, const char* to) noexcept {
  return fails_at("link", to) ? -1 : static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return fails_at("open", path) ? -1 : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int stat(const char* path, struct stat* found) noexcept {
  return fails_at("stat", path) ? -1 : ::fstatat(AT_FDCWD, path, found, 0);
}

dirent* readdir(DIR* folder) {
  static const auto next = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  return fails_on("readdir", ::dirfd(folder)) ? nullptr : next(folder);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  char path[8192];
  std::snprintf(path, sizeof path, "%s/%s", folder == AT_FDCWD ? "" : Path(folder).text, name);
  return fails_at("unlinkat", path) ? -1 : static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
}

int remove(const char* path) noexcept {
  if (fails_at("remove", path)) return -1;
  const auto without = [&](int flags) { return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, flags)); };
  const int result = without(0);
  return result != 0 && errno == EISDIR ? without(AT_REMOVEDIR) : result;
}

void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  if ((flags & MAP_ANONYMOUS) != 0 && fails_at("mmap", "anonymous")) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

int statvfs(const char* path, struct statvfs* found) noexcept {
  static const auto next = reinterpret_cast<int (*)(const char*, struct statvfs*)>(::dlsym(RTLD_NEXT, "statvfs"));
  const int result = next(path, found);
  if (const char* bytes = std::getenv("BRAID_FREE"); bytes && result == 0)
    found->f_bavail = static_cast<fsblkcnt_t>(std::atoll(bytes)) / found->f_frsize;
  return result;
}

}  // extern "C"
