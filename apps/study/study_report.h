// Tables and charts of a study, from the results of its finished runs.
#pragma once
#include <string>
#include <vector>

#include "apps/chart/medium.h"
#include "apps/study/study_state.h"

namespace braid::apps {

// Writes runs.csv, losses.csv, differences.csv, multipliers.csv, law.csv, families.csv, search.csv, rates.csv,
// curves.csv, their charts for the medium, tables.tex and report.md into study.out/report; files without rows are left
// out. Returns the text of report.md. `missing`: runs that are not finished.
std::string write_study_report(const Study& study, const std::vector<StudyResult>& search,
                               const std::vector<StudyResult>& results, int64_t missing, const Medium& medium);

}  // namespace braid::apps
