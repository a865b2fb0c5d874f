// The cost of a study, before it is run.
#pragma once
#include <string>
#include <vector>

#include "apps/study/pace.h"

namespace braid::apps {

// Runs with their parameters, tokens, FLOPs and time on this machine (by the finished runs of the same size and
// variant, else by formula as braid train --dry-run), and the time of the whole on 8 and 64 H100. Error(setting),
// Error(input) where a run could not be planned.
std::string study_plan(const Study& study, const std::vector<StudyRun>& runs, StepFormula& formula);

}  // namespace braid::apps
