#include "braid/tensor/io/append_file.h"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_append_file)

namespace {
// A limit on the size of files stands in for a disk that is full for a moment.
class FullDisk {
 public:
  FullDisk() { ::getrlimit(RLIMIT_FSIZE, &usual_); }
  ~FullDisk() {
    allow(usual_.rlim_cur);
    std::signal(SIGXFSZ, previous_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  void full_at(rlim_t bytes) { allow(bytes); }
  void has_room() { allow(usual_.rlim_cur); }

 private:
  void allow(rlim_t bytes) {
    rlimit limit = usual_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  rlimit usual_{};
  decltype(std::signal(SIGXFSZ, SIG_IGN)) previous_ = std::signal(SIGXFSZ, SIG_IGN);
};
}  // namespace

BOOST_AUTO_TEST_CASE(what_a_full_disk_did_not_take_is_written_later) {
  const TempFolder folder;
  FullDisk disk;
  io::AppendFile file(folder / "log", 100);
  file.append("first\n");
  disk.full_at(9);
  BRAID_CHECK_FAILS(file.append("second\n"), ErrorKind::output, "cannot write", "File too large");
  BRAID_CHECK_FAILS(file.append("third\n"), ErrorKind::output, "cannot write");
  BRAID_CHECK_FAILS(file.sync(), ErrorKind::output, "cannot write");
  disk.has_room();
  BOOST_TEST(folder.read("log") == "first\nsec");
  file.append("fourth\n");
  file.sync();
  BOOST_TEST(folder.read("log") == "first\nsecond\nthird\nfourth\n");
}

// What a full disk did not take is tried once more at the end, and the file is closed then.
BOOST_AUTO_TEST_CASE(its_end_writes_what_is_kept) {
  const TempFolder folder;
  FullDisk disk;
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
  };
  const auto before = open_files();
  {
    io::AppendFile file(folder / "log");
    disk.full_at(3);
    BRAID_CHECK_FAILS(file.append("second\n"), ErrorKind::output, "cannot write");
    disk.has_room();
  }
  BOOST_TEST(folder.read("log") == "second\n");
  BOOST_TEST(open_files() == before);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_there_goes_on_behind_what_is_kept_of_it) {
  const TempFolder folder;
  folder.write("log", "12345678");
  io::AppendFile(folder / "log").append("9");
  BOOST_TEST(folder.read("log") == "123456789");
  io::AppendFile(folder / "log", 4).append("x");
  BOOST_TEST(folder.read("log") == "1234x");
  io::AppendFile(folder / "log", 5).append("y");
  BOOST_TEST(folder.read("log") == "1234xy");
}

// As logs are rotated: moved away, or removed, or cut to nothing.
BOOST_AUTO_TEST_CASE(it_follows_its_name) {
  const TempFolder folder;
  io::AppendFile file(folder / "log");
  file.follow("head\n");
  file.append("1\n");
  BOOST_TEST(folder.read("log") == "head\n1\n");
  file.append("2\n");
  std::filesystem::rename(folder / "log", folder / "log.1");
  file.append("3\n");
  BOOST_TEST(folder.read("log.1") == "head\n1\n2\n");
  BOOST_TEST(folder.read("log") == "head\n3\n");
  folder.write("other", "");
  std::filesystem::rename(folder / "other", folder / "log");
  file.append("4\n");
  BOOST_TEST(folder.read("log") == "head\n4\n");
  std::filesystem::resize_file(folder / "log", 0);
  file.append("5\n");
  BOOST_TEST(folder.read("log") == "head\n5\n");
}

BOOST_AUTO_TEST_CASE(a_head_that_a_full_disk_did_not_take_is_written_once) {
  const TempFolder folder;
  FullDisk disk;
  io::AppendFile file(folder / "log");
  file.follow("head\n");
  disk.full_at(0);
  BRAID_CHECK_FAILS(file.append("1\n"), ErrorKind::output, "cannot write");
  disk.has_room();
  file.append("2\n");
  BOOST_TEST(folder.read("log") == "head\n1\n2\n");
}

// A full disk took the beginning of a row; then the file is moved away, which makes room, or cut.
BOOST_AUTO_TEST_CASE(a_torn_row_is_whole_in_the_file_that_follows) {
  for (const std::string other : {"moved away", "replaced", "cut"}) {
    const TempFolder folder;
    FullDisk disk;
    io::AppendFile file(folder / "log");
    file.follow("head\n");
    file.append("1\n");
    disk.full_at(9);
    BRAID_CHECK_FAILS(file.append("2345\n"), ErrorKind::output, "cannot write");
    BRAID_CHECK_FAILS(file.append("6\n"), ErrorKind::output, "cannot write");
    BOOST_TEST(folder.read("log") == "head\n1\n23");
    disk.has_room();
    if (other == "moved away")
      std::filesystem::rename(folder / "log", folder / "log.1");
    else if (other == "cut")
      std::filesystem::resize_file(folder / "log", 0);
    else
      std::filesystem::rename(folder.write("new", "head\n0\n"), folder / "log");
    file.append("7\n");
    BOOST_TEST(folder.read("log") == (other == "replaced" ? "head\n0\n2345\n6\n7\n" : "head\n2345\n6\n7\n"));
  }
}

BOOST_AUTO_TEST_CASE(it_may_be_synced_later_and_after_its_end) {
  const TempFolder folder;
  std::function<void()> sync;
  {
    io::AppendFile file(folder / "log");
    file.append("first\n");
    sync = file.sync_later();
    file.append("second\n");
  }
  std::filesystem::rename(folder / "log", folder / "log.1");
  sync();
  sync();
  BOOST_TEST(folder.read("log.1") == "first\nsecond\n");
  io::AppendFile full("/dev/full", 0);  // a device is neither shortened nor brought to any disk
  BRAID_CHECK_FAILS(full.append("x"), ErrorKind::output, "cannot write");
  BRAID_CHECK_FAILS(full.sync_later(), ErrorKind::output, "cannot write");
}

BOOST_AUTO_TEST_SUITE_END()
