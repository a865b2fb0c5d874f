// expect: step 0: expected 0, found 0.015
#pragma once
#define warmup_cosine warmup_cosine_right
#include "../exercise.h"
#undef warmup_cosine

namespace exercise {

inline double warmup_cosine(int64_t step, double peak, int64_t warmup, int64_t steps, double final_fraction) {
  return warmup_cosine_right(step + 1, peak, warmup, steps, final_fraction);
}

}  // namespace exercise
