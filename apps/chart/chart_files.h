// Charts as files.
#pragma once
#include <filesystem>
#include <string>

#include "apps/chart/chart.h"

namespace braid::apps {

// Writes STEM.svg, on paper STEM.pdf too; `csv`: the numbers of the chart, for STEM.csv, unless empty. Error(output).
void write_chart(const std::filesystem::path& stem, const Chart& chart, const std::string& csv, const Medium& medium);

}  // namespace braid::apps
