// What strict runs must have in common.
#pragma once
#include "tests/apps/train/runs.h"

namespace braid::test {

// Weights and their checksums, losses of training and validation, the best checkpoint, the sample.
inline void check_same_run(const std::filesystem::path& got, const std::filesystem::path& want,
                           const std::string& what) {
  BOOST_TEST((weights(step(got, kSteps)) == weights(step(want, kSteps))), what);
  BOOST_TEST(deterministic_log(got) == deterministic_log(want), what);
  for (const char* file : {"weights.csv", "best", "samples.txt", "reference.safetensors"})
    BOOST_TEST((slurp(got / file) == slurp(want / file)), what << ": " << file);
}

}  // namespace braid::test
