#include "braid/tensor/io/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdarg>
#include <functional>

#include "braid/tensor/io/append_file.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/io/shared_file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace {
std::function<void()> before_flock;  // once
enum InterruptedCall { kOpens, kSyncs, kTruncations, kAllocations, kLocks, kLookups };
int interrupted_calls[6] = {};  // of those to come
bool interrupt(InterruptedCall call) {
  if (interrupted_calls[call] == 0) return false;
  --interrupted_calls[call];
  errno = EINTR;
  return true;
}
}  // namespace

// These take the place of the C library's in this program.
extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (interrupt(kOpens)) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
extern "C" int openat(int folder, const char* path, int flags, ...) {  // of folders
  if (interrupt(kOpens)) return -1;
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags));
}
extern "C" int fsync(int fd) { return interrupt(kSyncs) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd)); }
extern "C" int ftruncate(int fd, off_t length) noexcept {
  return interrupt(kTruncations) ? -1 : static_cast<int>(::syscall(SYS_ftruncate, fd, length));
}
extern "C" int fallocate(int fd, int mode, off_t offset, off_t n) {
  return interrupt(kAllocations) ? -1 : static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, n));
}
extern "C" int flock(int fd, int operation) noexcept {
  if (before_flock) std::exchange(before_flock, {})();
  if (interrupt(kLocks)) return -1;
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}
extern "C" int stat(const char* path, struct stat* found) noexcept {
  return interrupt(kLookups) ? -1 : ::fstatat(AT_FDCWD, path, found, 0);
}

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_file_system)

namespace fs = std::filesystem;

// The holder of a lock removes the file in the moment in which another process has opened it and not yet locked it.
BOOST_AUTO_TEST_CASE(a_lock_is_on_the_file_that_bears_the_name) {
  const TempFolder folder;
  const std::string path = folder / "lock";
  before_flock = [&] { fs::remove(path); };
  const int held = io::open_locked(path, O_RDWR | O_CREAT | O_CLOEXEC);
  BOOST_TEST(held >= 0);
  BOOST_TEST(io::open_locked(path, O_RDWR | O_CREAT | O_CLOEXEC) == -1);  // of the file that is there now
  BOOST_TEST(errno == EWOULDBLOCK);
  ::close(held);

  const fs::path place = folder.path / "place";
  fs::create_directory(place);
  before_flock = [&] { fs::rename(place, folder.path / "moved"); };
  BOOST_TEST(io::open_locked(place.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) == -1);
  BOOST_TEST(errno == ENOENT);
}

BOOST_AUTO_TEST_CASE(an_interrupted_call_is_repeated) {
  const TempFolder folder;
  const auto interrupted = [](auto&& work, InterruptedCall call = kOpens) {
    interrupted_calls[call] = 2;
    work();
    BOOST_TEST(interrupted_calls[call] == 0);
  };
  interrupted([&] { io::write_file(folder / "a", "text"); });
  interrupted([&] { BOOST_TEST(io::read_text_file(folder / "a", 10) == "text"); });
  interrupted([&] { io::AppendFile(folder / "b").append("text"); });
  interrupted([&] { io::make_shared_file(folder / "c", 4); });
  interrupted([&] { io::SharedFile file(folder / "c"); });
  interrupted([&] { io::sync_folder(folder.path); });
  interrupted([&] { ::close(io::open_locked(folder / "d", O_RDWR | O_CREAT)); });
  BOOST_TEST(folder.entries() == 4u);
  io::make_folder(folder.path / "e/f");
  interrupted([&] { io::remove_path(folder.path / "e"); });

  interrupted([&] { io::write_file(folder / "a", "text"); }, kSyncs);
  interrupted([&] { io::sync_folder(folder.path); }, kSyncs);
  interrupted([&] { io::AppendFile(folder / "b").sync(); }, kSyncs);
  interrupted([&] { io::SharedFile(folder / "c").commit(); }, kSyncs);
  interrupted([&] { io::AppendFile(folder / "b", 1); }, kTruncations);
  interrupted([&] { io::make_shared_file(folder / "f", 4); }, kTruncations);
  interrupted([&] { io::make_shared_file(folder / "g", 4); }, kAllocations);
  interrupted([&] { ::close(io::open_locked(folder / "d", O_RDWR)); }, kLookups);
  interrupted([&] { ::close(io::open_locked(folder / "d", O_RDWR)); }, kLocks);
  interrupted([&] { io::write_file(folder / "a", "text"); }, kLocks);
  folder.write("a.tmp-9-00000000", "of a killed process");
  interrupted([&] { io::remove_leftovers(folder / "a"); }, kLocks);
  BOOST_TEST(!fs::exists(folder / "a.tmp-9-00000000"));
}

// As a user who may not: the superuser may.
BOOST_AUTO_TEST_CASE(a_folder_that_may_not_be_read_is_not_taken_for_empty) {
  const TempFolder folder;
  const fs::path closed = folder.path / "closed";
  fs::create_directory(closed);
  fs::permissions(folder.path, fs::perms(0755)), fs::permissions(closed, fs::perms(0));
  const uid_t user = ::geteuid();
  constexpr uid_t nobody = 65534;
  if (user == 0) BOOST_REQUIRE(::seteuid(nobody) == 0);
  BRAID_CHECK_FAILS(io::check_readable(closed), ErrorKind::input, "closed: Permission denied; check its rights");
  BOOST_REQUIRE(::seteuid(user) == 0);
  fs::permissions(closed, fs::perms(0755));
  io::check_readable(closed);
  io::check_readable(folder.path / "none");  // somebody else says that it is not there
}

BOOST_AUTO_TEST_CASE(a_folder_that_may_be_written_and_not_read_takes_files) {
  const TempFolder folder;
  const fs::path drop = folder.path / "drop";
  fs::create_directory(drop);
  fs::permissions(folder.path, fs::perms(0755)), fs::permissions(drop, fs::perms(0333));
  const uid_t user = ::geteuid();
  constexpr uid_t nobody = 65534;
  if (user == 0) BOOST_REQUIRE(::seteuid(nobody) == 0);
  BOOST_CHECK_NO_THROW(io::write_file((drop / "a").string(), "text"));
  BOOST_REQUIRE(::seteuid(user) == 0);
  fs::permissions(drop, fs::perms(0755));
  BOOST_TEST(folder.read("drop/a") == "text");
}

BOOST_AUTO_TEST_CASE(folders_are_made_with_their_parents) {
  const TempFolder folder;
  io::make_folder(folder.path / "a/b/c");
  io::make_folder(folder.path / "a/b/d/");
  BOOST_TEST(fs::is_directory(folder.path / "a/b/c"));
  BOOST_TEST(fs::is_directory(folder.path / "a/b/d"));
}

BOOST_AUTO_TEST_SUITE_END()
