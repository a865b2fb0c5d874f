// expect: merges b\+c, a\+b, a\+bc, ab\+bc, c\+a: expected.*hint: the lowest rank of all pairs of the word
#pragma once
#define encode encode_right
#include "../exercise.h"
#undef encode

namespace exercise {

inline Ids encode(std::string_view word, const Merges& merges) {
  Ids ids = bytes(word);
  for (size_t i = 0; i + 1 < ids.size();) {  // merges the first pair that can be
    const auto found = std::find(merges.begin(), merges.end(), Pair(ids[i], ids[i + 1]));
    if (found == merges.end()) {
      ++i;
    } else {
      ids[i] = 256 + static_cast<int32_t>(found - merges.begin());
      ids.erase(ids.begin() + static_cast<int64_t>(i) + 1);
      i = 0;
    }
  }
  return ids;
}

}  // namespace exercise
