// expect: rename.weights.tmp, weights., sync.weights.; weights has the bytes of the last sync: expected weights
// Renamed before the bytes are synced.
#pragma once
#define replace right_replace
#include "tests/course/13_safe_run/exercise.h"
#undef replace

namespace exercise {

inline void replace(Disk& disk, const std::string& name, const std::string& bytes) {
  disk.create(name + ".tmp");
  disk.write(name + ".tmp", bytes);
  disk.rename(name + ".tmp", name);
  disk.sync(name);
  disk.sync_folder();
}

}  // namespace exercise
