// The status command, run as the real program beside real runs.
#include "apps/train/run/run_status.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/cpu/instruction_sets.h"
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(status)

namespace {

const std::vector<std::string> kEndless = {"train.steps=1000000", "schedule.name=constant"};

bool shows(const std::filesystem::path& out, const std::string& words, const std::string& flags = "") {
  const Outcome result = run("status " + out.string() + " " + flags);
  const bool ok = result.code == 0 && result.output.find(words) != std::string::npos;
  if (!ok) BOOST_TEST_MESSAGE("no '" << words << "' in: " << result.output);
  return ok;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_finished_run_shows_its_last_values) {
  const auto row = apps::last_row(undisturbed());
  BOOST_REQUIRE(row.has_value());
  BOOST_TEST(row->step == kSteps);
  BOOST_TEST((*row)["val_loss"] == apps::read_log(undisturbed()).back()["val_loss"]);
  BOOST_TEST(shows(undisturbed(), "  finished  step 10/10 (100%)  loss "));
  BOOST_TEST(shows(undisturbed(), "\"state\":\"finished\",\"reason\":\"\",\"step\":10,\"steps\":10,", "--json"));
}

BOOST_AUTO_TEST_CASE(running_then_stopped_then_killed) {
  const auto out = world().fresh();
  {
    Process process(settings(out, kEndless));
    read_until(process, "step 2/");
    BOOST_TEST(shows(out, "  running  step "));
    BOOST_TEST(shows(out, "ETA "));
    process.signal(SIGTERM);
    BOOST_TEST(process.wait().code == 75);
    BOOST_TEST(shows(out, "  stopped  step "));
    BOOST_TEST(shows(out, "by SIGTERM"));
  }
  {
    Process process(settings(out, kEndless));
    read_until(process, "step ");
    BOOST_TEST(shows(out, "  running  "));
  }  // killed
  BOOST_TEST(shows(out, "  killed  "));
  BOOST_TEST(shows(out, "is gone and left no message"));
  // Another program may train, such as braid study or Python. A process that was started later is not the run.
  auto s = *apps::read_status(out);
  s.pid = ::getpid();
  for (const int64_t since : {apps::process_start(s.pid), int64_t{0}, int64_t{1}}) {
    s.since = since;
    apps::write_status(out, s);
    BOOST_TEST(shows(out, since == 1 ? "  killed  " : "  running  "));
  }
}

BOOST_AUTO_TEST_CASE(a_failed_run_shows_its_error) {
  const auto out = world().fresh();
  const Outcome failed = train(out, {"optimizer.lr=1e30", "optimizer.clip=0", "schedule.warmup=0", "guard.spike=6"});
  BOOST_TEST(failed.code == 5);
  BOOST_TEST(failed.output.find("set guard.spike=0") == std::string::npos, failed.output);  // it does not help with NaN
  BOOST_TEST(shows(out, "  failed  "));
  BOOST_TEST(shows(out, " at step "));
  const Outcome row = run("status " + out.string());
  BOOST_TEST(row.output.size() < 250u, row.output);
  // A run on another host is judged by its files.
  auto s = *apps::read_status(out);
  s.state = "running";
  s.host = "another";
  apps::write_status(out, s);
  BOOST_TEST(shows(out, "  running  "));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* file : {"log.csv", "log.jsonl", "status.json"})
    std::filesystem::last_write_time(out / file, long_ago);
  BOOST_TEST(shows(out, "  silent  "));
  BOOST_TEST(shows(out, "2h00m ago"));
}

BOOST_AUTO_TEST_CASE(several_runs_are_a_table_and_others_are_left_out) {
  const std::string here = undisturbed().string(), data = world().data().string();
  const Outcome both = run("status " + here + " " + data + " " + here + " --watch 5");  // ends: nothing runs
  BOOST_TEST(both.code == 0);
  BOOST_TEST(both.output.find("is no run folder: left out") != std::string::npos, both.output);
  BOOST_TEST(split(both.output, '\n').size() == 4u, both.output);
  check_failure(run("status " + data), 3, "no run in ");
  check_failure(run("status " + data + " " + data), 3, "none of these is a run folder");
  check_failure(run("status " + data + "-none"), 3, "cannot find ");
  // One that is missing does not hide the others.
  const Outcome missing = run("status " + data + "-none " + undisturbed().string() + " " + data + "-neither");
  BOOST_TEST(missing.code == 3, missing.output);
  for (const std::string& words : {std::string("  finished  step 10/10"), data + "-none", std::string("  no run"),
                                   "cannot find " + data + "-none, " + data + "-neither: expected run folders"})
    BOOST_TEST(missing.output.find(words) != std::string::npos, "no '" << words << "' in: " << missing.output);
  BOOST_TEST(
      run("status --json " + undisturbed().string() + " " + data + "-none").output.find("\"state\":\"no run\"") !=
      std::string::npos);
  const Scratch damaged;
  write(damaged / "log.csv", "step,loss,val_loss\n1,5\n");
  check_failure(run("status " + damaged.path.string()), 3, "broken log in ");
  const Outcome rest = run("status " + damaged.path.string() + " " + here);
  BOOST_TEST(rest.code == 0);
  BOOST_TEST(rest.output.find("left out: broken log in ") != std::string::npos, rest.output);
  BOOST_TEST(rest.output.find("finished") != std::string::npos, rest.output);
}

// A run folder of an earlier version, without status.json.
BOOST_AUTO_TEST_CASE(earlier_runs_are_judged_by_their_log) {
  const Scratch old;
  write(old / "log.csv", "step,loss,val_loss\n1,5,\n2,4,4.5\n3,3.5,\n");
  BOOST_TEST(shows(old.path, "  unknown  step 3/?  loss 3.5000  val 4.5000"));
  write(old / "config.resolved.toml", "[train]\nsteps = 3\n");
  BOOST_TEST(shows(old.path, "  finished  step 3/3 (100%)"));
}

// The head of a run: on the terminal, in log.jsonl and in config.resolved.toml.
BOOST_AUTO_TEST_CASE(a_run_says_who_where_and_when) {
  const auto out = world().fresh();
  const Outcome result = train(out, {"train.steps=2", "run.threads=1"});
  const std::string commit = ", commit ";
  for (const std::string& text : {result.output, slurp(out / "config.resolved.toml")}) {
    BOOST_TEST(text.find("braid 0.") != std::string::npos, text);
    BOOST_TEST(text.find(commit) != std::string::npos);
    BOOST_TEST(text.find(", CPU") != std::string::npos);
    BOOST_TEST(text.find(" on host ") != std::string::npos);
    BOOST_TEST(text.find(", threads 1\n") != std::string::npos);
    BOOST_TEST(text.find("started 20") != std::string::npos);
  }
  const std::vector<std::string> lines = split(slurp(out / "log.jsonl"), '\n');
  BOOST_TEST(lines[0].starts_with("{\"step\":0,\"event\":\"start\",\"time\":\"20"));
  BOOST_TEST(lines[0].find("\"ranks\":\"0\"") != std::string::npos, lines[0]);
  BOOST_TEST(lines[0].find("\"kernels\":\"" + std::string(cpu::instruction_set().name) + "\"") != std::string::npos);
  BOOST_TEST(lines[0].find("\"command\":\"braid train ") != std::string::npos);
  BOOST_TEST(lines[1].starts_with("{\"step\":1,\"loss\":"));
  BOOST_TEST(lines[1].find(",\"time\":\"20") != std::string::npos, lines[1]);
  // It continues, and a start stands where the run continued.
  BOOST_TEST(train(out, {"train.steps=3", "run.threads=1"}).code == 0);
  BOOST_TEST(slurp(out / "log.jsonl").find("\n{\"step\":2,\"event\":\"start\"") != std::string::npos);
  // The comments do not count as settings.
  BOOST_TEST(run("train " + (out / "config.resolved.toml").string() + " --print-config").code == 0);
}

BOOST_AUTO_TEST_SUITE_END()
