// Runs that differ in their seed alone, drawn as one: mean and spread.
#pragma once
#include <string>
#include <vector>

#include "apps/chart/panel.h"

namespace braid::apps {

// Runs whose name matches a pattern (* any text, ? any character) become one run of that name, at the place of the
// first of them: its rows are the means of the steps that all of them have, its members these runs at these steps. A
// run belongs to the first pattern that it matches; others stay as they are. Error(setting) for a pattern without a
// run; Error(input) where runs of a group have no step in common.
std::vector<Run> group_runs(std::vector<Run> runs, const std::vector<std::string>& patterns);

// Mean, and standard deviation of a sample: sqrt(sum (v - mean)^2 / (n - 1)), 0 for one value. NaN where one is NaN.
struct MeanAndSpread {
  double mean, spread;
};
MeanAndSpread mean_and_spread(const std::vector<double>& values);

}  // namespace braid::apps
