// Variants compared with the baseline, seed by seed.
#pragma once
#include <string>
#include <vector>

#include "apps/study/report_writer.h"
#include "apps/study/study_state.h"
#include "braid/models/study/intervals.h"

namespace braid::apps {

struct Difference {
  std::string size, variant;
  double budget = 0;
  int64_t pairs = 0;
  models::Estimate loss;                   // of the variant less that of the baseline
  double p = 0, p_holm = 0;                // of the paired t test, and corrected for all differences; NaN for one pair
  double flops_ratio = 0, time_ratio = 0;  // of a step, to the baseline's

  std::string verdict() const;  // "lower", "higher" or "not decided", at a corrected p of 0.05
};

// For every size, budget and variant with a seed that the baseline has too.
std::vector<Difference> differences_from_baseline(const Study& study, const std::vector<StudyResult>& results);

// The section of the report: table, chart, differences.csv.
void report_differences(const Study& study, const std::vector<StudyResult>& results, ReportWriter& report);

}  // namespace braid::apps
