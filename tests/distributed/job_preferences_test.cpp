// Preferences under mpirun: the losses and the reference, of which each rank computes a share, of one process.
#include <cmath>

#include "apps/train/log/log.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "tests/distributed/job_support.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_preferences)

BOOST_AUTO_TEST_CASE(pairs_are_trained_on_as_by_one_process) {
  const fs::path start = world().fresh(), data = world().folder.path / "pairs";
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"prompt\": \"" + std::to_string(i * 37) + " \", \"chosen\": \"" + std::to_string(i % 9) +
             "\", \"rejected\": \"" + std::to_string(i * i) + "\"}\n";
  world().folder.write("pairs.jsonl", lines);
  BOOST_TEST(says(run(test::braid_program() + " prepare " + (world().folder / "pairs.jsonl") +
                      " --preferences --val-fraction 0.2 -o " + data.string()),
                  0, "60 pairs of sequences"));
  BOOST_TEST(says(run(train(start, "")), 0, "trained"));
  const auto trained = [&](const fs::path& out, int ranks, const std::string& more) {
    return run((ranks > 1 ? mpirun(ranks) : "") +
               train(out, "data.path=" + data.string() + " train.init_from=" + start.string() +
                              " data.seq_len=16 train.steps=6 train.batch_size=5 train.accumulate=2 eval.interval=3" +
                              " eval.samples=0 " + more));
  };
  const fs::path one = world().fresh(), three = world().fresh();
  BOOST_TEST(says(trained(one, 1, ""), 0, "validation accuracy"));
  BOOST_TEST(says(trained(three, 3, "checkpoint.interval=4"), 0, "validation accuracy"));
  const auto check_log = [&] {
    const auto expected = apps::read_log(one), found = apps::read_log(three);
    BOOST_TEST(found.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      for (const apps::LogName column : {apps::LogName("loss"), apps::LogName("logp_rejected")})
        BOOST_TEST(found[i][column] == expected[i][column], boost::test_tools::tolerance(1e-10));
      BOOST_TEST(found[i]["accuracy"] == expected[i]["accuracy"]);
      BOOST_TEST(std::abs(found[i]["margin"] - expected[i]["margin"]) < 1e-10);
      BOOST_TEST(std::isnan(found[i]["val_loss"]) == std::isnan(expected[i]["val_loss"]));
      if (std::isnan(expected[i]["val_loss"])) continue;
      BOOST_TEST(found[i]["val_loss"] == expected[i]["val_loss"], boost::test_tools::tolerance(1e-10));
      BOOST_TEST(found[i]["val_accuracy"] == expected[i]["val_accuracy"]);
    }
  };
  check_log();
  fs::remove_all(three / models::step_name(6));
  BOOST_TEST(says(trained(three, 2, ""), 0, "resuming from"));  // by other processes
  check_log();
  BOOST_TEST(says(trained(world().fresh(), 2, "parallel.tensor=2"), 2, "parallel.tensor does not go with preferences"));
  BOOST_TEST(
      says(trained(world().fresh(), 2, "parallel.context=2"), 2, "parallel.context does not go with preferences"));
}

BOOST_AUTO_TEST_SUITE_END()
