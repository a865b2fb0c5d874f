// expect: killed in the last call of remove.*create.step-00000002.tmp.: expected load.. to give step 1 or 2, found
// nothing The old ones go before the new one is there.
#pragma once
#define save right_save
#include "tests/course/13_safe_run/exercise.h"
#undef save

namespace exercise {

inline void save(Disk& disk, int step, const std::string& state, int keep) {
  const std::vector<std::string> names = disk.list();
  for (size_t i = names.size(); i-- > 0;) {
    if (step_of(names[i]) >= 0 && --keep > 0) continue;
    disk.remove(names[i]);
  }
  replace(disk, name_of(step), pack(state));
}

}  // namespace exercise
