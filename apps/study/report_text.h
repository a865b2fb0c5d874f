// Numbers and tables of a study's report, as text.
#pragma once
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

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
  if (!std::isfinite(e.low) || !std::isfinite(e.high)) return "no interval";
  return "[" + fixed(e.low, decimals) + ", " + fixed(e.high, decimals) + "]";
}

// A table in Markdown.
class Table {
 public:
  explicit Table(const std::vector<std::string>& names) : columns_(names.size()) {
    row(names);
    text_ += "|---|" + [&] {
      std::string rest;
      for (size_t i = 1; i < columns_; ++i) rest += "--:|";
      return rest;
    }() + "\n";
  }
  void row(const std::vector<std::string>& cells) {
    text_ += "|";
    for (const std::string& cell : cells) text_ += " " + cell + " |";
    text_ += "\n";
  }
  const std::string& text() const { return text_; }

 private:
  size_t columns_;
  std::string text_;
};

}  // namespace braid::apps
