// expect: 1 2 3 1 2: expected \(9 3 9\), found \(9 2 3 9 2\)
#pragma once
#define merged merged_right
#include "../exercise.h"
#undef merged

namespace exercise {

inline Ids merged(const Ids& ids, Pair pair, int32_t made) {
  Ids out;
  for (size_t i = 0; i < ids.size(); ++i)
    out.push_back(i + 1 < ids.size() && Pair(ids[i], ids[i + 1]) == pair ? made : ids[i]);
  return out;
}

}  // namespace exercise
