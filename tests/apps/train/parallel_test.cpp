// Settings of several processes that can be checked in one: plans, and errors.
#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"

using braid::test::Outcome;
using braid::test::run;

namespace {
bool says(const Outcome& o, int code, const std::string& words) {
  bool ok = o.code == code && o.output.find(words) != std::string::npos;
  if (!ok) BOOST_TEST_MESSAGE("exit " << o.code << "\n" << o.output << "\nexpected " << code << ": " << words);
  return ok;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(parallel)

BOOST_AUTO_TEST_CASE(dry_run_plans_any_layout_without_starting_it) {
  Outcome o =
      run("train model.preset=dcpythia-6.9b --dry-run parallel.tensor=8 parallel.context=2 parallel.data=64 "
          "train.batch_size=128");
  BOOST_TEST(says(o, 0, "one of 1024 processes: 64 data x 2 context x 8 tensor"));
  for (const char* line :
       {"  weights                            3.77 GB", "  gradients                          3.77 GB"})
    BOOST_TEST(says(o, 0, line));
  for (const char* line : {"between tensor ranks", "between context ranks", "between ranks with the same weights",
                           "between all ranks", "of it beside the backward pass"})
    BOOST_TEST(says(o, 0, line));
  o = run("train model.preset=dcpythia-6.9b --dry-run");
  BOOST_TEST(o.code == 0);
  BOOST_TEST(o.output.find("one of") == std::string::npos);
  BOOST_TEST(says(run("train model.preset=dcformer-tiny --dry-run parallel.tensor=1000"), 2,
                  "parallel.tensor = 1000 is more than"));
}

BOOST_AUTO_TEST_CASE(one_process_is_not_many) {
  BOOST_TEST(says(run("train data.path=x parallel.tensor=2"), 2, "start them with mpirun -np 2"));
  BOOST_TEST(says(run("train parallel.context=0"), 2, "parallel.context"));
}

BOOST_AUTO_TEST_CASE(bench_comm_runs_on_one_process) {
  Outcome o = run("bench comm --megabytes 1 --seconds 0");
  BOOST_TEST(says(o, 0, "1 processes"));
  BOOST_TEST(says(o, 0, "all_to_all"));
  BOOST_TEST(says(run("bench com"), 2, "expected step (training steps) or comm"));
}

BOOST_AUTO_TEST_SUITE_END()
