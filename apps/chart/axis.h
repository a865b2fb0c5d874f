// Axes: where a value lies on a chart, and round values to label.
#pragma once
#include <string>
#include <vector>

namespace braid::apps {

struct Axis {
  double min = 0, max = 1;
  bool log = false;
  bool whole = false;        // only integers make sense on it
  double low = 0, high = 0;  // chart coordinates of min and max
  double at(double value) const;
};

struct Tick {
  double value;
  std::string label;
};
// About `count` round positions inside [axis.min, axis.max] with labels that tell them apart.
std::vector<Tick> ticks(const Axis& axis, int count);

}  // namespace braid::apps
