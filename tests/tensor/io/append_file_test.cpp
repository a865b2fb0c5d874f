#include "braid/tensor/io/append_file.h"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <csignal>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_append_file)

// A limit on the size of files stands in for a disk that is full for a moment.
BOOST_AUTO_TEST_CASE(what_a_full_disk_did_not_take_is_written_later) {
  const TempFolder folder;
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlim_t usual = limit.rlim_cur;
  io::AppendFile file(folder / "log", 100);
  file.append("first\n");
  limit.rlim_cur = 9;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  BRAID_CHECK_FAILS(file.append("second\n"), ErrorKind::output, "cannot write", "File too large");
  BRAID_CHECK_FAILS(file.append("third\n"), ErrorKind::output, "cannot write");
  BRAID_CHECK_FAILS(file.sync(), ErrorKind::output, "cannot write");
  limit.rlim_cur = usual;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  BOOST_TEST(folder.read("log") == "first\nsec");
  file.append("fourth\n");
  file.sync();
  BOOST_TEST(folder.read("log") == "first\nsecond\nthird\nfourth\n");
  std::signal(SIGXFSZ, previous);
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
  io::AppendFile full("/dev/full");  // a device is not brought to any disk
  BRAID_CHECK_FAILS(full.append("x"), ErrorKind::output, "cannot write");
  BRAID_CHECK_FAILS(full.sync_later(), ErrorKind::output, "cannot write");
}

BOOST_AUTO_TEST_SUITE_END()
