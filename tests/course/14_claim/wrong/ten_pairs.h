// expect: effect 0.007, deviation 0.01: expected 11, found 0
// The search ends before the last number of pairs.
#pragma once
#define pairs_needed right_pairs_needed
#include "tests/course/14_claim/exercise.h"
#undef pairs_needed

namespace exercise {

inline int pairs_needed(double effect, double s) {
  const int found = right_pairs_needed(effect, s);
  return found < 11 ? found : 0;
}

}  // namespace exercise
