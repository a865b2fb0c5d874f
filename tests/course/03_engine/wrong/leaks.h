// expect: clear: expected the chain to be gone, but its start is still held
// The graph is not taken apart but moved to where nobody finds it.
#pragma once
#include <utility>

#define clear right_clear
#include "tests/course/03_engine/exercise.h"
#undef clear

namespace exercise {

inline void clear(Value& y) { new Value(std::exchange(y, nullptr)); }

}  // namespace exercise
