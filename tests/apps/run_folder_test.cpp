#include "apps/common/run_folder.h"

#include <boost/test/unit_test.hpp>
#include <csignal>

#include "tests/apps/support.h"

using namespace braid;
using namespace braid::app;
using braid::test::says;
using braid::test::Scratch;
using braid::test::write;

BOOST_AUTO_TEST_SUITE(run_folder)

BOOST_AUTO_TEST_CASE(one_process_at_a_time) {
  const Scratch scratch;
  const auto path = scratch / "deep/run";
  {
    const RunFolder held(path);
    BOOST_TEST(std::filesystem::is_directory(path));
    // flock belongs to the open file, so a second opening in this process is refused like another process.
    BOOST_CHECK_EXCEPTION(RunFolder second(path), Error,
                          says(ErrorKind::setting, "is in use by process " + std::to_string(::getpid()) + ":"));
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

BOOST_AUTO_TEST_CASE(bad_places) {
  const Scratch scratch;
  write(scratch / "file", "x");
  BOOST_CHECK_EXCEPTION(RunFolder(scratch / "file"), Error,
                        says(ErrorKind::setting, "expected a folder, found a file"));
  BOOST_CHECK_EXCEPTION(RunFolder(scratch / "file/below"), Error, says(ErrorKind::output, "cannot create folder"));
  BOOST_CHECK_EXCEPTION(RunFolder(""), Error, says(ErrorKind::setting, "run.out is empty"));
}

BOOST_AUTO_TEST_CASE(finds_finished_checkpoints_in_order) {
  const Scratch scratch;
  BOOST_TEST(step_folders(scratch / "none").empty());
  for (const char* name : {"step-00001000", "step-00000050", "step-123456789", "step-00002000.tmp", "step-5", "step-x",
                           "step--0000001", "plots"})
    std::filesystem::create_directories(scratch / name);
  write(scratch / "step-00000077", "a file");
  const auto found = step_folders(scratch.path());
  BOOST_REQUIRE(found.size() == 3u);
  BOOST_TEST(found[0].step == 50);
  BOOST_TEST(found[1].step == 1000);
  BOOST_TEST(found[2].step == 123456789);
  BOOST_TEST(found[1].path == scratch / "step-00001000");
  BOOST_TEST(step_name(1000) == "step-00001000");
}

BOOST_AUTO_TEST_SUITE_END()
