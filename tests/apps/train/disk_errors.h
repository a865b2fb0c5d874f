// A run on a disk that fails, with checkpoints that training waits for or that are written beside it.
#pragma once
#include <cstring>

#include "tests/apps/faults.h"
#include "tests/apps/train/runs.h"

namespace braid::test {

// Each of these errors, once, is survived. settings: with a checkpoint every two steps, as below.
inline void check_single_errors(const std::vector<std::string>& settings) {
  for (const auto& [call, part, pass, cause] : {std::tuple{"fallocate", "step-", 2, ENOSPC},
                                                {"pwrite", "optimizer", 1, EIO},
                                                {"fsync", "step-", 5, EIO},
                                                {"rename", "step-00000004", 0, EIO},
                                                {"pwrite", "manifest", 2, ENOSPC},
                                                {"stat", "step-00000004.tmp/config.json", 0, EIO},
                                                {"open", "step-00000004.tmp/trainer", 3, EMFILE},
                                                {"open", "step-00000004/model", 0, ESTALE},
                                                {"fsync", "log.csv", 1, EIO}}) {
    BOOST_TEST_CONTEXT(call << " of " << part) {
      const std::filesystem::path out = world().fresh();
      const Outcome result = train(out, settings, fault(call, part, pass, 1, cause));
      BOOST_TEST(result.code == 0, result.output);
      BOOST_TEST(has(result, std::strerror(cause)), result.output);
      BOOST_TEST(has(result, "(failure 1 of 3 in a row; the run continues and tries again"), result.output);
      check_same(out);
      BOOST_TEST(slurp(out / "latest") == "step-00000010\n");
    }
  }
}

// A disk that stays full ends the run, which loses nothing.
inline void check_third_failure(const std::vector<std::string>& settings) {
  const std::filesystem::path out = world().fresh();
  const Outcome result = train(out, settings, fault("fallocate", "step-", 2, 1000, ENOSPC));
  check_failure(result, 4, "No space left on device");
  BOOST_TEST(has(result, "(failure 2 of 3 in a row; "), result.output);
  BOOST_TEST(has(result, "(the third failure in a row)"), result.output);
  BOOST_TEST(has(result, "step 8/10"), result.output);  // of the checkpoints at 4, 6 and 8
  std::vector<std::string> notes;
  BOOST_TEST(models::newest_checkpoint(out, notes).step == 2);
  BOOST_TEST(notes.empty());
  BOOST_TEST(train(out).code == 0);
  check_same(out);
}

}  // namespace braid::test
