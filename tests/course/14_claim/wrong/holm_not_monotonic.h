// expect: entry 1: expected 0.06, found 0.04
// The adjusted p of a larger p may not be smaller.
#pragma once
#define holm right_holm
#include "tests/course/14_claim/exercise.h"
#undef holm

namespace exercise {

inline std::vector<double> holm(const std::vector<double>& p) {
  std::vector<double> adjusted;
  for (const double value : p) {
    const auto larger = std::count_if(p.begin(), p.end(), [&](double other) { return other >= value; });
    adjusted.push_back(std::min(1.0, static_cast<double>(larger) * value));
  }
  return adjusted;
}

}  // namespace exercise
