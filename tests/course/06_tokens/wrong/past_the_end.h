// expect: next  merged: from left to right.*crashed: Aborted
#pragma once
#define merged merged_right
#include "../exercise.h"
#undef merged

namespace exercise {

inline Ids merged(const Ids& ids, Pair pair, int32_t made) {
  Ids out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool found = Pair(ids[i], ids[i + 1]) == pair;  // of the last token there is no next one
    out.push_back(found ? made : ids[i]);
    if (found) ++i;
  }
  return out;
}

}  // namespace exercise
