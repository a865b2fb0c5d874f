// expect: merge 0: expected \(108 111\), found \(111 119\)
#pragma once
#define train train_right
#include "../exercise.h"
#undef train

namespace exercise {

inline Merges train(const std::vector<std::string>& words, int n) {
  std::vector<Ids> split;
  for (const std::string& word : words) split.push_back(bytes(word));
  Merges merges;
  for (int rank = 0; rank < n; ++rank) {
    std::pair<Pair, int64_t> best{};
    for (const auto& entry : count_pairs(split))
      if (entry.second >= best.second) best = entry;
    if (best.second == 0) break;
    merges.push_back(best.first);
    for (Ids& word : split) word = merged(word, best.first, 256 + rank);
  }
  return merges;
}

}  // namespace exercise
