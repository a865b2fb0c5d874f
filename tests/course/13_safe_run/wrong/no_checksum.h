// expect: with bit [0-9]+ of byte [0-9]+ changed: expected nullopt.*hint: compare the checksum
// The size alone: a changed bit is not noticed.
#pragma once
#define unpack right_unpack
#include "tests/course/13_safe_run/exercise.h"
#undef unpack

namespace exercise {

inline std::optional<std::string> unpack(const std::string& file) {
  const size_t end = file.find(10);
  const std::string state = file.substr(end + 1);
  if (end == std::string::npos || file.find("state " + std::to_string(state.size()) + " ") != 0) return std::nullopt;
  return state;
}

}  // namespace exercise
