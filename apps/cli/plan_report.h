// The text of a plan: titles, and numbers in words.
#pragma once
#include <cstdio>
#include <string>

namespace braid::apps {

inline std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
inline std::string flop_text(double flops, const std::string& per = "") {
  double size = 1e3;
  std::string prefix = "k";
  for (const char* larger : {"M", "G", "T"})
    if (flops >= 1e3 * size) size *= 1e3, prefix = larger;
  return number("%.4g ", flops / size) + prefix + "FLOP" + per;
}
inline std::string percent(double share) { return number("%.1f %%", 100 * share); }
inline std::string share(double part, double whole) { return number("%.3g %%", 100 * part / whole); }
inline std::string exponent(double value) { return number("%.2e", value); }

// Titles with lines of a label and a value below them.
class Report {
 public:
  void title(const std::string& text) { text_ += text + "\n"; }
  void line(const std::string& label, const std::string& value) {
    text_ += "  " + label + std::string(label.size() < 34 ? 34 - label.size() : 0, ' ') + " " + value + "\n";
  }
  void text(const std::string& text) { text_ += "  " + text + "\n"; }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace braid::apps
