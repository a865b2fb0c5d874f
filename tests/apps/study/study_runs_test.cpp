// The runs of a study and their settings.
#include "apps/study/study_runs.h"

#include <boost/test/unit_test.hpp>

#include "apps/study/study_file.h"
#include "tests/apps/support.h"

using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(study_runs)

BOOST_AUTO_TEST_CASE(a_warmup_of_a_section_beats_the_fraction_which_beats_the_config) {
  const Scratch scratch;
  write(scratch / "below.toml", "[schedule]\nwarmup = 2\n");
  Study study;
  study.config = (scratch / "below.toml").string();
  study.out = "out", study.baseline = "plain", study.seeds = {1};
  study.budget_unit = "steps", study.budgets = {200}, study.warmup_fraction = 0.1;
  study.sizes = {{"a", {}}, {"b", {"schedule.warmup=5"}}};
  study.variants = {{"plain", {}}, {"short", {"schedule.warmup=4"}}};
  const auto warmups = [&] {
    std::vector<int64_t> found;
    for (const StudyRun& run : main_runs(study, {}, {}))
      found.push_back(RunSettings(study, run.settings).config.schedule.warmup);
    return found;
  };
  BOOST_TEST(warmups() == (std::vector<int64_t>{20, 4, 5, 4}), boost::test_tools::per_element());
  study.base.settings = {"schedule.warmup=3"};
  BOOST_TEST(warmups() == (std::vector<int64_t>{3, 4, 5, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
