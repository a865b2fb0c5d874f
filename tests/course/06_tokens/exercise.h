// A solution of exercise 6.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "course/checks.h"

namespace exercise {

using Ids = std::vector<int32_t>;
using Pair = std::pair<int32_t, int32_t>;
using Merges = std::vector<Pair>;

inline Ids bytes(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

inline std::map<Pair, int64_t> count_pairs(const std::vector<Ids>& words) {
  std::map<Pair, int64_t> counts;
  for (const Ids& word : words)
    for (size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
  return counts;
}

inline Ids merged(const Ids& ids, Pair pair, int32_t made) {
  Ids out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool found = i + 1 < ids.size() && Pair(ids[i], ids[i + 1]) == pair;
    out.push_back(found ? made : ids[i]);
    if (found) ++i;
  }
  return out;
}

inline Merges train(const std::vector<std::string>& words, int n) {
  std::vector<Ids> split;
  for (const std::string& word : words) split.push_back(bytes(word));
  Merges merges;
  for (int rank = 0; rank < n; ++rank) {
    const std::map<Pair, int64_t> counts = count_pairs(split);
    if (counts.empty()) break;
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    merges.push_back(std::max_element(counts.begin(), counts.end(), less)->first);  // the first of the largest
    for (Ids& word : split) word = merged(word, merges.back(), 256 + rank);
  }
  return merges;
}

inline Ids encode(std::string_view word, const Merges& merges) {
  Ids ids = bytes(word);
  for (;;) {
    const std::map<Pair, int64_t> present = count_pairs({ids});
    size_t rank = 0;
    while (rank < merges.size() && !present.contains(merges[rank])) ++rank;
    if (rank == merges.size()) return ids;
    ids = merged(ids, merges[rank], 256 + static_cast<int32_t>(rank));
  }
}

inline std::string decode(const Ids& ids, const Merges& merges) {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 256) {
      text += static_cast<char>(id);
    } else {
      const Pair pair = merges[static_cast<size_t>(id - 256)];
      text += decode({pair.first, pair.second}, merges);
    }
  }
  return text;
}

}  // namespace exercise
