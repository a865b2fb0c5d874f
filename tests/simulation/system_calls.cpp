// Functions of the C library that this program has itself: the linker binds the calls of Braid and of the C++ library
// to them. Calls of other threads, and on files elsewhere, go to the kernel unchanged.
#include "tests/simulation/system_calls.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace braid::simulation {

namespace {

World* world = nullptr;
thread_local bool inside = false;  // a call of the world itself

// call() on `path`, as the world decides; after its success changed(disk, result).
template <class Call, class Changed>
auto simulate(const char* name, const std::string& path, const Call& call, const Changed& changed) {
  World* w = entered();
  if (!w || !w->disk.holds(path)) return call(false);
  w->scheduler.point();
  inside = true;
  const Outcome outcome = w->before(name, path);
  decltype(call(false)) result = -1;
  if (outcome.error != 0) {
    errno = outcome.error;
  } else {
    result = call(outcome.half);
    if (result >= 0) changed(w->disk, result);
  }
  inside = false;
  return result;
}
constexpr auto kNothing = [](Disk&, long) {};

std::string path_of(int fd) { return entered() ? entered()->disk.path_of(fd) : ""; }

std::string path_at(int folder, const char* name) {
  if (folder == AT_FDCWD || name[0] == '/') return name;
  const std::string path = path_of(folder);
  return path.empty() ? "" : path + "/" + name;
}

int open_at(int folder, const char* name, int flags, mode_t mode) {
  const std::string path = path_at(folder, name);
  return simulate(
      "open", path, [&](bool) { return static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode)); },
      [&](Disk& disk, int fd) {
        if ((flags & O_CREAT) != 0) disk.added(path, false);
        disk.opened(fd, path);
      });
}

int remove_at(int folder, const char* name, int flags) {
  const std::string path = path_at(folder, name);
  const World* w = entered();
  std::string bytes;
  return simulate(
      "remove", path,
      [&](bool) {
        if (inside && flags == 0) bytes = w->disk.bytes_to_lose(path);
        return static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
      },
      [&](Disk& disk, int) { disk.removed(path, bytes); });
}

int rename_with(const char* from, const char* to, unsigned flags) {
  const World* w = entered();
  std::string bytes;
  return simulate(
      "rename", to,
      [&](bool) {
        if (inside) bytes = w->disk.bytes_to_lose(to);
        return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
      },
      [&](Disk& disk, int) {
        if ((flags & RENAME_EXCHANGE) != 0)
          disk.exchanged(from, to);
        else
          disk.renamed(from, to, bytes);
      });
}

ssize_t write_at(const char* name, int fd, const void* bytes, size_t n, off_t offset) {
  return simulate(
      name, path_of(fd),
      [&](bool half) -> ssize_t {
        const size_t count = half ? (n + 1) / 2 : n;
        return offset < 0 ? ::syscall(SYS_write, fd, bytes, count) : ::syscall(SYS_pwrite64, fd, bytes, count, offset);
      },
      kNothing);
}

int sleep_for(const timespec* time) {
  World* w = entered();
  w->scheduler.sleep_until(w->scheduler.now() + static_cast<double>(time->tv_sec) +
                           static_cast<double>(time->tv_nsec) * 1e-9);
  return 0;
}

}  // namespace

void set_world(World* of) { world = of; }
Outcome decide(World& of, const char* call, const std::string& path) {
  inside = true;
  const Outcome outcome = of.before(call, path);
  inside = false;
  return outcome;
}
World* entered() { return world && !inside && Scheduler::self() >= 0 ? world : nullptr; }

}  // namespace braid::simulation

using namespace braid::simulation;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(folder, name, flags, mode);
}

int close(int fd) {
  World* w = entered();
  if (w) w->disk.closed(fd);
  const long result = ::syscall(SYS_close, fd);
  if (w && w->sockets) w->scheduler.notify(w);
  return static_cast<int>(result);
}

int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  const long result = ::syscall(SYS_fcntl, fd, command, argument);
  if (World* w = entered(); w && result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
    w->disk.duplicated(fd, static_cast<int>(result));
  return static_cast<int>(result);
}

ssize_t write(int fd, const void* bytes, size_t n) { return write_at("write", fd, bytes, n, -1); }
ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) { return write_at("pwrite", fd, bytes, n, offset); }

ssize_t read(int fd, void* bytes, size_t n) {
  return simulate(
      "read", path_of(fd), [&](bool) -> ssize_t { return ::syscall(SYS_read, fd, bytes, n); }, kNothing);
}

ssize_t pread(int fd, void* bytes, size_t n, off_t offset) {
  return simulate(
      "pread", path_of(fd), [&](bool) -> ssize_t { return ::syscall(SYS_pread64, fd, bytes, n, offset); }, kNothing);
}

int fsync(int fd) {
  return simulate(
      "fsync", path_of(fd), [&](bool) { return static_cast<int>(::syscall(SYS_fsync, fd)); },
      [&](Disk& disk, int) { disk.synced(fd); });
}

int ftruncate(int fd, off_t length) noexcept {
  return simulate(
      "ftruncate", path_of(fd), [&](bool) { return static_cast<int>(::syscall(SYS_ftruncate, fd, length)); }, kNothing);
}

int fallocate(int fd, int mode, off_t offset, off_t n) {
  return simulate(
      "fallocate", path_of(fd), [&](bool) { return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, n)); },
      kNothing);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return simulate(
      "mkdir", path, [&](bool) { return static_cast<int>(::syscall(SYS_mkdir, path, mode)); },
      [&](Disk& disk, int) { disk.added(path, true); });
}

int rename(const char* from, const char* to) noexcept { return rename_with(from, to, 0); }
int renameat2(int, const char* from, int, const char* to, unsigned flags) noexcept {  // of absolute paths
  return rename_with(from, to, flags);
}

int unlink(const char* path) noexcept { return remove_at(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return remove_at(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int folder, const char* name, int flags) noexcept { return remove_at(folder, name, flags); }
int remove(const char* path) noexcept {
  const int result = remove_at(AT_FDCWD, path, 0);
  return result != 0 && errno == EISDIR ? remove_at(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  World* w = entered();
  if (!w || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const int64_t now = std::llround(w->scheduler.now() * 1e9);  // the moment to which a thread slept is reached
  time->tv_sec = first_second(clock) + now / 1'000'000'000;
  time->tv_nsec = now % 1'000'000'000;
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  return entered() ? sleep_for(time) : static_cast<int>(::syscall(SYS_nanosleep, time, left));
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (entered() && flags == 0) return sleep_for(time);
  return ::syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
}

pid_t getpid() noexcept {
  const World* w = entered();
  return w ? w->process + Scheduler::self() : static_cast<pid_t>(::syscall(SYS_getpid));
}

ssize_t getrandom(void* bytes, size_t n, unsigned flags) {
  World* w = entered();
  if (!w) return ::syscall(SYS_getrandom, bytes, n, flags);
  for (size_t i = 0; i < n; ++i) static_cast<char*>(bytes)[i] = static_cast<char>(w->random.next());
  return static_cast<ssize_t>(n);
}

}  // extern "C"
