#include "apps/chart/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/text.h"

namespace braid::apps {

double Axis::at(double value) const {
  const double share = log ? std::log(value / min) / std::log(max / min) : (value - min) / (max - min);
  return low + share * (high - low);
}

namespace {

// Number with just enough decimals for steps of this size; thousands and millions with a letter.
std::string tick_label(double value, double step, double largest) {
  if (value == 0) return "0";
  double scale = 1;
  const char* suffix = "";
  if (largest >= 1e9)
    scale = 1e9, suffix = "G";
  else if (largest >= 1e6)
    scale = 1e6, suffix = "M";
  else if (largest >= 1e4)
    scale = 1e3, suffix = "k";
  char buffer[64];
  if (largest < 1e-3) {
    const int digits = std::max(0, static_cast<int>(std::floor(std::log10(std::fabs(value)) + 1e-9)) -
                                       static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    std::snprintf(buffer, sizeof buffer, "%.*e", digits, value);
    // 3e-04 -> 3e-4
    std::string text = buffer;
    if (const size_t e = text.find("e-0"); e != std::string::npos) text.erase(e + 2, 1);
    return text;
  }
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / scale) - 1e-9)), 0, 12);
  std::snprintf(buffer, sizeof buffer, "%.*f%s", decimals, value / scale, suffix);
  return buffer;
}

std::vector<Tick> whole_ticks(const Axis& axis) {
  std::vector<Tick> result;
  for (double value = std::ceil(axis.min); value <= axis.max; ++value) result.push_back({value, shortest(value)});
  return result;
}

std::vector<Tick> linear_ticks(const Axis& axis, int count) {
  const double rough = (axis.max - axis.min) / std::max(1, count);
  if (!std::isfinite(rough) || !(rough > 0)) return {};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  if (axis.whole && rough < 1) return whole_ticks(axis);
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (!(axis.whole && factor * power == 2.5) && factor * power >= rough * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  std::vector<Tick> result;
  const double largest = std::max(std::fabs(axis.min), std::fabs(axis.max));
  // 2.5 needs a decimal more than its power of ten says.
  const double shown = std::fabs(step / power - 2.5) < 1e-9 ? step / 25 : step;
  const double first = std::ceil(axis.min / step - 1e-9);
  // Counted by an integer: beyond 2^53 a double plus one is the same double.
  for (int i = 0; i <= 2 * count + 2; ++i) {
    const double value = (first + i) * step;
    if (!(value <= axis.max + 1e-9 * step)) break;
    if (result.empty() || value > result.back().value) result.push_back({value, tick_label(value, shown, largest)});
  }
  return result;
}

}  // namespace

std::vector<Tick> ticks(const Axis& axis, int count) {
  if (!axis.log || !(axis.min > 0) || !std::isfinite(axis.max)) return linear_ticks(axis, count);
  // Whole powers of ten, then 1-2-5, then 1..9: the first set with at least three inside; else as on a linear axis.
  for (const std::vector<int>& digits : {std::vector<int>{1}, {1, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    std::vector<Tick> result;
    for (int e = static_cast<int>(std::floor(std::log10(axis.min))); e <= std::ceil(std::log10(axis.max)); ++e)
      for (const int digit : digits) {
        const double value = digit * std::pow(10, e);
        if (value >= axis.min * (1 - 1e-9) && value <= axis.max * (1 + 1e-9))
          result.push_back({value, tick_label(value, std::pow(10, e), value)});
      }
    if (result.size() < 3) continue;
    const size_t stride = (result.size() - 1) / static_cast<size_t>(std::max(1, 2 * count)) + 1;
    std::vector<Tick> thinned;
    for (size_t i = 0; i < result.size(); i += stride) thinned.push_back(result[i]);
    return thinned;
  }
  return linear_ticks(axis, count);
}

}  // namespace braid::apps
