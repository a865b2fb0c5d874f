// expect: new - old of the table in the chapter: expected from -0.032415 to -0.007585, found from -0.1
// The two lists are compared as if their seeds had nothing in common.
#pragma once
#define paired right_paired
#include "tests/course/14_claim/exercise.h"
#undef paired

namespace exercise {

inline Interval paired(const Losses& old_losses, const Losses& new_losses) {
  const double n = static_cast<double>(old_losses.size()), a = deviation(old_losses), b = deviation(new_losses);
  const double half =
      kT[2 * old_losses.size() - 1 > 11 ? 11 : 2 * old_losses.size() - 1] * std::sqrt((a * a + b * b) / n);
  const double difference = mean(new_losses) - mean(old_losses);
  return {difference - half, difference + half};
}

}  // namespace exercise
