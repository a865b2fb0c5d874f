// Numbers of a study's report, as text.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "braid/models/study/intervals.h"

namespace braid::apps {

using models::Estimate;

inline std::string fixed(double value, int decimals = 4) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return std::isfinite(value) ? text : "-";
}
inline std::string with_sign(double value, int decimals = 4) { return (value > 0 ? "+" : "") + fixed(value, decimals); }
inline std::string interval(const Estimate& e, int decimals = 4) {
  if (!std::isfinite(e.low)) return "no interval";
  return "[" + fixed(e.low, decimals) + ", " + (std::isfinite(e.high) ? fixed(e.high, decimals) : "no bound") + "]";
}

// How many values numbers are of: "3", or "2 to 3" where they differ.
struct Counts {
  int64_t least = 0, most = 0;
  void add(int64_t count) {
    least = most == 0 ? count : std::min(least, count);
    most = std::max(most, count);
  }
  std::string text() const { return std::to_string(least) + (most > least ? " to " + std::to_string(most) : ""); }
};

}  // namespace braid::apps
