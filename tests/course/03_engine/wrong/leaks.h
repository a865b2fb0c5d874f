// expect: clear: expected the chain to be gone, but its start is still held
// The graph is not taken apart but moved to where nobody finds it.
#pragma once
#include <utility>

#include "tests/course/03_engine/exercise.h"

namespace exercise {

inline void leak(Value& y) { new Value(std::exchange(y, nullptr)); }

}  // namespace exercise

#define clear leak  // in the checks
