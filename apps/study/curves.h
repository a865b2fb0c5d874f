// The loss of a study's runs over their steps, by variant.
#pragma once
#include <vector>

#include "apps/study/report_writer.h"
#include "apps/study/study_state.h"

namespace braid::apps {

// The section of the report: a panel for each size and budget, with the mean over seeds in a band of one standard
// deviation, and curves.csv. The loss is that of validation where every run has four or more values of it, else
// that of training, smoothed. Runs whose log is gone are left out.
void report_curves(const Study& study, const std::vector<StudyResult>& results, ReportWriter& report);

}  // namespace braid::apps
