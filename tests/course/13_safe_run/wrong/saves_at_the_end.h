// expect: expected checkpoints of the steps 2 4 5, found 5
// Only the last step is saved: a kill loses the whole run.
#pragma once
#define run right_run
#include "tests/course/13_safe_run/exercise.h"
#undef run

namespace exercise {

inline std::string run(Disk& disk, const std::string& start, int steps, int,
                       const std::function<std::string(const std::string& state, int number)>& step) {
  return right_run(disk, start, steps, steps, step);
}

}  // namespace exercise
