#include "apps/train/run/run_lock.h"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <set>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(run_folder)

using braid::test::Scratch;
using braid::test::write;

BOOST_AUTO_TEST_CASE(one_process_at_a_time) {
  const Scratch scratch;
  const auto path = scratch / "deep/run";
  {
    const RunFolder held(path);
    BOOST_TEST(std::filesystem::is_directory(path));
    // flock belongs to the open file, so a second opening in this process is rejected like another process.
    BRAID_CHECK_FAILS(RunFolder second(path), ErrorKind::setting,
                      "is in use by process " + std::to_string(::getpid()) + ":");
    write(path / ".lock", "123\nnode7\n");  // where many machines see the folder
    BRAID_CHECK_FAILS(RunFolder second(path), ErrorKind::setting, "is in use by process 123 on host node7:");
  }
  const RunFolder again(path);
  BOOST_TEST(again.path() == path);
}

BOOST_AUTO_TEST_CASE(a_killed_process_leaves_no_lock) {
  const Scratch scratch;
  const auto path = scratch / "run";
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held(path);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  BOOST_TEST(WIFSIGNALED(status));
  BOOST_CHECK_NO_THROW(RunFolder again(path));
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_gone_is_noticed) {
  const Scratch scratch;
  const auto path = scratch / "run";
  const RunFolder held(path);
  held.check_held();
  const std::string gone = "was removed or moved while it was in use";
  std::filesystem::rename(path, scratch / "moved");
  BRAID_CHECK_FAILS(held.check_held(), ErrorKind::output, gone);
  const RunFolder other(path);  // a new run of the name
  BRAID_CHECK_FAILS(held.check_held(), ErrorKind::output, gone);
  other.check_held();
}

BOOST_AUTO_TEST_CASE(temporary_files_of_a_killed_run_are_removed) {
  const Scratch scratch;
  for (const char* name :
       {"latest.tmp-12-00000000", "config.resolved.toml.tmp-7-00000031", "best.tmp-1-0000000a",
        "status.json.tmp-9-00000000", "latest", "latest.tmp-2", "notes.tmp-1-0000000a", "chart.svg.tmp-3-00000004"})
    write(scratch / name, "x");
  const RunFolder held(scratch.path);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path))
    left.insert(entry.path().filename().string());
  BOOST_TEST(left == (std::set<std::string>{".lock", "latest", "latest.tmp-2", "notes.tmp-1-0000000a",
                                            "chart.svg.tmp-3-00000004"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_places) {
  const Scratch scratch;
  write(scratch / "file", "x");
  BRAID_CHECK_FAILS(RunFolder(scratch / "file"), ErrorKind::setting, "expected a folder, found a file");
  BRAID_CHECK_FAILS(RunFolder(scratch / "file/below"), ErrorKind::output, "cannot create folder");
  BRAID_CHECK_FAILS(RunFolder(""), ErrorKind::setting, "run.out is empty");
}

BOOST_AUTO_TEST_SUITE_END()
