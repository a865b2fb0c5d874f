// What a study finds in its folder: files that are damaged end with 3 and their names.
#include "apps/study/study_state.h"

#include <boost/test/unit_test.hpp>

#include "apps/study/study_runs.h"
#include "braid/tensor/error.h"
#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(study_state)

BOOST_AUTO_TEST_CASE(damaged_files_of_a_study) {
  const Scratch scratch;
  Study study;
  study.name = "given", study.out = scratch.path.string();
  StudyRun run;
  run.name = "a", run.steps = 4;
  const auto fails_with = [&](const std::string& file, const std::string& text, const std::string& words) {
    write(scratch / "runs/a/study.json", "{}");
    write(scratch / "runs/a/result.json", R"({"validation_loss": 1, "flops": 1})");
    write(scratch / "runs/a/families.csv", "step,family,accuracy\n4,copy,0.5\n");
    write(scratch / file, text);
    BRAID_CHECK_FAILS(read_result(study, run), ErrorKind::input, words);
  };
  std::filesystem::create_directories(scratch / "runs/a");
  fails_with("runs/a/study.json", R"({"settings": "x"})", "runs/a/study.json: 'settings' has another type");
  fails_with("runs/a/result.json", R"({"validation_loss": 1, "flops": 1, "diverged": "yes"})",
             "'diverged' has another type");
  for (const char* step : {"x", "12345678901234567890123"})
    fails_with("runs/a/families.csv", std::string("step,family,accuracy\n") + step + ",copy,1\n",
               "line 2: expected a step");
}

BOOST_AUTO_TEST_SUITE_END()
