// How many steps fit into a time: a budget in minutes. Each variant is trained for a few steps first, in five rounds
// over all variants; the lowest of the five medians of its step times is its pace,
//
//   steps = floor(60 minutes / pace),
//
// so that variants are compared at equal time on this machine. The lowest, because whatever else the machine does adds
// time, often for half a minute: the medians of two equal variants differed by 10 %. The study's folder keeps the runs
// that were measured: a study that is resumed trains the same numbers of steps. Validation and checkpoints are not
// counted.
#pragma once
#include <optional>
#include <vector>

#include "apps/study/study_state.h"
#include "apps/train/plan/machine.h"

namespace braid::apps {

// Seconds of a step on this machine by formula, as braid train --dry-run has them: half or twice as many may be true.
class StepFormula {
 public:
  double seconds(const RunSettings& settings);

 private:
  std::optional<Machine> machine_;  // its rate is measured once
};

// Seconds of a step by size and variant, from the results of pace runs.
Paces paces_of(const std::vector<StudyResult>& results);
// Those that are not measured, by formula.
Paces planned_paces(const Study& study, Paces measured, StepFormula& formula);

}  // namespace braid::apps
