// The table of runs in a chart: colours, names, last values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/chart/panel.h"

namespace braid::apps {

// A number with so many decimals, "-" for NaN.
std::string shown(double value, int decimals, const std::string& unit = "");
size_t letters(const std::string& text);  // of UTF-8

// The words: one row per run, first the header. Of a group mean ± spread.
std::vector<std::vector<std::string>> legend(const std::vector<Run>& runs, int64_t window);

// first: place and size of the first row. The columns stand at the right, as wide as their longest words; the runs'
// names take the rest. validated: with the circles of validation.
void draw_legend(Drawing& drawing, const Frame& first, const std::vector<std::vector<std::string>>& rows,
                 bool validated);

}  // namespace braid::apps
