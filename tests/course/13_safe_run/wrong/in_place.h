// expect: killed in the last call of create.weights., write.weights, 25 bytes.: expected weights to be .* found
// "weights of s" The file is emptied before its new bytes are there.
#pragma once
#define replace right_replace
#include "tests/course/13_safe_run/exercise.h"
#undef replace

namespace exercise {

inline void replace(Disk& disk, const std::string& name, const std::string& bytes) {
  disk.create(name);
  disk.write(name, bytes);
  disk.sync(name);
  disk.sync_folder();
}

}  // namespace exercise
