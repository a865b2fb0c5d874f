// expect: write.weights.tmp, 25 bytes., rename.*; weights has the bytes of the last sync: expected weights
// The bytes are never synced: the name may reach the disk before them.
#pragma once
#define replace right_replace
#include "tests/course/13_safe_run/exercise.h"
#undef replace

namespace exercise {

inline void replace(Disk& disk, const std::string& name, const std::string& bytes) {
  disk.create(name + ".tmp");
  disk.write(name + ".tmp", bytes);
  disk.rename(name + ".tmp", name);
  disk.sync_folder();
}

}  // namespace exercise
