#include "braid/tensor/io/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <functional>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace {
std::function<void()> before_flock;  // once
}

// Takes the place of the C library's in this program.
extern "C" int flock(int fd, int operation) noexcept {
  if (before_flock) std::exchange(before_flock, {})();
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
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

BOOST_AUTO_TEST_CASE(folders_are_made_with_their_parents) {
  const TempFolder folder;
  io::make_folder(folder.path / "a/b/c");
  io::make_folder(folder.path / "a/b/d/");
  BOOST_TEST(fs::is_directory(folder.path / "a/b/c"));
  BOOST_TEST(fs::is_directory(folder.path / "a/b/d"));
}

BOOST_AUTO_TEST_SUITE_END()
