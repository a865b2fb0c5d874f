// The runs of a study and their settings.
#include "apps/study/study_runs.h"

#include <boost/test/unit_test.hpp>

#include "apps/study/study_file.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(study_runs)

BOOST_AUTO_TEST_CASE(a_warmup_of_a_variant_beats_the_fraction) {
  Study study;
  study.out = "out", study.baseline = "plain", study.seeds = {1};
  study.budget_unit = "steps", study.budgets = {200}, study.warmup_fraction = 0.1;
  study.sizes = {{"a", {}}};
  study.variants = {{"plain", {}}, {"short", {"schedule.warmup=4"}}};
  std::vector<std::string> warmups;
  for (const StudyRun& run : main_runs(study, {}, {}))
    for (const std::string& setting : run.settings)
      if (setting.starts_with("schedule.warmup=")) warmups.push_back(setting);
  BOOST_TEST(warmups == (std::vector<std::string>{"schedule.warmup=20", "schedule.warmup=4"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
