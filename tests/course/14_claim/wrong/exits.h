// expect: next  mean and deviation.*ended with exit code 0 before the check did
// It ends the process of the check before any number is compared.
#pragma once
#define mean right_mean
#include "tests/course/14_claim/exercise.h"
#undef mean

namespace exercise {

inline double mean(const Losses&) { std::exit(0); }

}  // namespace exercise
