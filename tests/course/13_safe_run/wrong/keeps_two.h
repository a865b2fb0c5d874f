// expect: expected the files step-00000005, found step-00000004 step-00000005
// Two checkpoints stay, whatever was asked for.
#pragma once
#define save right_save
#include "tests/course/13_safe_run/exercise.h"
#undef save

namespace exercise {

inline void save(Disk& disk, int step, const std::string& state, int) { right_save(disk, step, state, 2); }

}  // namespace exercise
