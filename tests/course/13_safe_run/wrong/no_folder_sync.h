// expect: power lost after .*; the folder does not know of rename.weights.tmp, weights.: expected weights to be
// "weights of step 2, longer" The bytes are safe, the name is not.
#pragma once
#define replace right_replace
#include "tests/course/13_safe_run/exercise.h"
#undef replace

namespace exercise {

inline void replace(Disk& disk, const std::string& name, const std::string& bytes) {
  disk.create(name + ".tmp");
  disk.write(name + ".tmp", bytes);
  disk.sync(name + ".tmp");
  disk.rename(name + ".tmp", name);
}

}  // namespace exercise
