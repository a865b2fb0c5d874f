// The end of a run of braid train, by train.steps or by eval.patience: what it leaves and says, and a start after it.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_ending)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(a_run_ends_when_validation_no_longer_falls) {
  std::vector<std::string> patient = {"eval.patience=2",      "eval.interval=1",   "train.steps=60",
                                      "checkpoint.best=true", "optimizer.lr=0.05", "schedule.name=constant",
                                      "sample.interval=50",   "sample.tokens=4"};
  const fs::path out = world().fresh(), rows_of_command = world().fresh(), metrics = world().fresh();
  const Outcome ended = train(out, patient);
  BOOST_TEST(ended.code == 0, ended.output);
  const std::vector<apps::LogRow> rows = apps::read_log(out);
  const int64_t last = rows.back().step;
  const auto lowest = std::ranges::min_element(rows, {}, [](const apps::LogRow& row) { return row["val_loss"]; });
  BOOST_TEST(last < 60);
  BOOST_TEST(lowest->step == last - 2);
  BOOST_TEST(ended.output.find("at step " + std::to_string(lowest->step)) != std::string::npos, ended.output);
  BOOST_TEST(fs::exists(step(out, static_cast<int>(last))));  // its weights are saved
  BOOST_TEST(slurp(out / "samples.txt").find("--- step " + std::to_string(last) + "\n") != std::string::npos);
  // Given again, it is finished, and its record stays.
  const std::string record = slurp(out / "config.resolved.toml");
  std::vector<std::string> others = patient;
  others.insert(others.end(), {"optimizer.lr=0.01", "log.metrics_file=" + metrics.string(),
                               "'log.command=cat > " + rows_of_command.string() + "'"});
  const Outcome again = train(out, others);
  BOOST_TEST(again.code == 0, again.output);
  BOOST_TEST(again.output.find("already finished (a larger eval.patience continues)") != std::string::npos);
  BOOST_TEST(slurp(out / "config.resolved.toml") == record);
  for (const fs::path& file : {metrics, rows_of_command}) BOOST_TEST(!fs::exists(file), file);
  patient[0] = "eval.patience=0";
  patient[2] = "train.steps=" + std::to_string(last + 2);
  BOOST_TEST(train(out, patient).code == 0);
  BOOST_TEST(apps::read_log(out).back().step == last + 2);
  const Outcome never = train(world().fresh(), {"eval.patience=2", "eval.interval=0"});
  BOOST_TEST(never.code == 2, never.output);
}

BOOST_AUTO_TEST_CASE(a_finished_run_stays_as_it_is) {
  const fs::path out = world().fresh();
  train(out);
  const Outcome again = train(out);
  BOOST_TEST(again.code == 0);
  BOOST_TEST(
      again.output.find("already finished (a larger train.steps continues): trained 10 steps") != std::string::npos,
      again.output);
  BOOST_TEST(again.output.find("nan") == std::string::npos, again.output);
  check_same(out);
  const std::string settings = slurp(out / "config.resolved.toml");
  const Outcome fewer = train(out, {"train.steps=5", "optimizer.lr=1"});
  BOOST_TEST(fewer.code == 0);
  BOOST_TEST(fewer.output.find("already finished") != std::string::npos, fewer.output);
  BOOST_TEST(slurp(out / "config.resolved.toml") == settings);
  check_same(out);
}

BOOST_AUTO_TEST_CASE(the_summary_tells_of_which_step_an_older_validation_is) {
  const fs::path out = world().fresh();
  const Outcome first = train(out), longer = train(out, {"train.steps=12", "eval.interval=0"});
  BOOST_TEST(!has(first, "(at step "), first.output);
  BOOST_TEST(longer.code == 0, longer.output);
  BOOST_TEST(has(longer, " (at step 10)"), longer.output);
}

BOOST_AUTO_TEST_SUITE_END()
