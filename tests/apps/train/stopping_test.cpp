// A run of braid train, disturbed from outside: by signals, and by its reader, folder and data, which go away.
#include <cmath>

#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_stopping)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(signals_save_and_end_with_75) {
  for (const auto& [signal, name] :
       {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}, {SIGHUP, "SIGHUP"}}) {
    BOOST_TEST_CONTEXT(name) {
      Outcome stopped{0, ""};
      fs::path out;
      for (int attempt = 0; attempt < 5 && stopped.code == 0;
           ++attempt) {  // again if it was done before the signal came
        out = world().fresh();
        Process process(settings(out, {"checkpoint.interval=1"}));
        read_until(process, "step 2/");
        process.signal(signal);
        stopped = process.wait();
      }
      BOOST_TEST(stopped.code == 75, stopped.output);
      BOOST_TEST(stopped.output.find(std::string("stopped by ") + name + " after step ") != std::string::npos);
      BOOST_TEST(stopped.output.find("run the same command again") != std::string::npos);
      const Outcome rest = train(out);
      BOOST_TEST(rest.code == 0, rest.output);
      BOOST_TEST(rest.output.find("resuming from ") != std::string::npos);
      check_same(out);
    }
  }
}

// A stop during the measurements of the last step: a run with the same log and samples follows, whenever it came.
BOOST_AUTO_TEST_CASE(a_stop_does_not_wait_for_the_validation) {
  const std::vector<std::string> slow = {"eval.interval=10", "eval.tasks=3000", "sample.interval=10"};
  const fs::path straight = world().fresh();
  BOOST_TEST(train(straight, slow).code == 0);
  bool interrupted = false;
  for (int attempt = 0; attempt < 10 && !interrupted; ++attempt) {
    const fs::path out = world().fresh();
    Outcome stopped{0, ""};
    {
      Process process(settings(out, slow));
      read_until(process, "step 9/");
      sleep_us(30000 * (attempt + 1));
      process.signal(SIGTERM);
      stopped = process.wait();
    }
    BOOST_TEST((stopped.code == 75 || stopped.code == 0), stopped.output);
    interrupted =
        stopped.code == 75 && apps::read_log(out).size() == 10 && std::isnan(apps::read_log(out).back()["task_acc"]);
    if (interrupted) {  // and a kill while the measurements are completed
      Process again(settings(out, slow));
      read_until(again, "resuming from ");
      sleep_us(100000);
      again.signal(SIGKILL);
      again.wait();
    }
    const Outcome rest = train(out, slow);
    BOOST_TEST(rest.code == 0, rest.output);
    check_same(out, straight);
    BOOST_TEST(slurp(out / "samples.txt") == slurp(straight / "samples.txt"));
  }
  BOOST_TEST(interrupted);
}

BOOST_AUTO_TEST_CASE(data_that_cannot_be_read_any_more_cost_no_step) {
  const fs::path out = world().fresh(), data = world().fresh();
  fs::copy(world().data(), data, fs::copy_options::recursive);
  Process process(settings(out, {"data.path=" + data.string(), "train.steps=1000000", "checkpoint.interval=0"}));
  read_until(process, "step 5/");
  for (const auto& entry : fs::directory_iterator(data))
    if (entry.path().filename().string().starts_with("train")) fs::resize_file(entry.path(), 64);
  const Outcome end = process.wait();
  BOOST_TEST(end.code == 3, end.output);
  BOOST_TEST(end.output.find("is saved, the run resumes from it") != std::string::npos, end.output);
  BOOST_REQUIRE(models::step_folders(out).size() == 1u);
  BOOST_TEST(models::step_folders(out)[0].step >= 5);
}

// Another run may have begun in its place.
BOOST_AUTO_TEST_CASE(a_run_whose_folder_is_gone_ends) {
  const fs::path out = world().fresh(), moved = world().fresh();
  Process process(settings(out, {"checkpoint.interval=1", "train.steps=1000000"}));
  read_until(process, "step 2/");
  fs::rename(out, moved);
  fs::create_directories(out);
  const std::string others =
      "{\"state\":\"running\",\"reason\":\"\",\"host\":\"h\",\"pid\":1,\"steps\":5,\"started\":1,\"written\":1}";
  write(out / "status.json", others);
  const Outcome end = process.wait();
  BOOST_TEST(end.code == 4, end.output);
  BOOST_TEST(end.output.find(out.string() + " was removed or moved while it was in use") != std::string::npos,
             end.output);
  BOOST_TEST(models::step_folders(out).empty());
  BOOST_TEST(slurp(out / "status.json") == others);
  BOOST_TEST(!models::step_folders(moved).empty());
}

BOOST_AUTO_TEST_CASE(samples_stand_once_after_a_kill) {
  const std::vector<std::string> often = {"sample.interval=1", "sample.tokens=8"};
  const fs::path straight = world().fresh(), out = world().fresh();
  BOOST_TEST(train(straight, often).code == 0);
  {
    Process process(settings(out, {"sample.interval=1", "sample.tokens=8", "checkpoint.interval=4"}));
    read_until(process, "step 6/");
  }  // SIGKILL
  BOOST_TEST(train(out, often).code == 0);
  BOOST_TEST(slurp(out / "samples.txt") == slurp(straight / "samples.txt"));
}

// `braid train ... | head -1`: the run continues to its end.
BOOST_AUTO_TEST_CASE(a_reader_that_goes_away_does_not_end_the_run) {
  const fs::path out = world().fresh();
  Process process(settings(out));
  process.line();
  process.close_output();
  BOOST_TEST(process.wait().code == 0);
  check_same(out);
}

BOOST_AUTO_TEST_SUITE_END()
