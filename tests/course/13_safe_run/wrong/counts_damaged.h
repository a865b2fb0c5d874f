// expect: expected the files step-00000002 step-00000004, found .*hint: a damaged one does not count as kept
// Keeps by name, so that a damaged checkpoint pushes out a whole one.
#pragma once
#define save right_save
#include "tests/course/13_safe_run/exercise.h"
#undef save

namespace exercise {

inline void save(Disk& disk, int step, const std::string& state, int keep) {
  replace(disk, name_of(step), pack(state));
  const std::vector<std::string> names = disk.list();
  for (size_t i = names.size(); i-- > 0;) {
    if (step_of(names[i]) < 0 || keep-- <= 0) disk.remove(names[i]);
  }
}

}  // namespace exercise
