#include "apps/study/study_cost.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/study/rates.h"
#include "apps/study/study_state.h"
#include "apps/train/plan/machine.h"
#include "apps/train/plan/step_time.h"
#include "apps/train/task/from_config.h"
#include "braid/tensor/error.h"

namespace braid::apps {

namespace {

// Seconds of the runs on GPUs: one after the other on all of them, or one GPU each side by side.
struct Elsewhere {
  int64_t gpus;
  Machine machine;
  double in_order = 0, on_one = 0, longest = 0;
  bool all_fit = true, one_fits = true;

  std::string text() const {
    const double apart = std::max(on_one / static_cast<double>(gpus), longest);
    if (!all_fit && !one_fits) return "does not fit into the memory of a GPU in any layout";
    const bool side_by_side = !all_fit || (one_fits && apart < in_order);
    const double seconds = side_by_side ? apart : in_order;
    return time_in_words(seconds) + ", " + human(seconds * static_cast<double>(gpus) / 3600, 3) + " GPU hours, " +
           (side_by_side ? str("a run on each GPU (--part I/", gpus, ")") : "one run after the other on all of them");
  }
};

std::string row(const std::string& name, const std::string& parameters, const std::string& tokens,
                const std::string& steps, const std::string& flops, const std::string& time, const std::string& state) {
  char text[240];
  std::snprintf(text, sizeof text, "%-38s %10s %10s %8s %12s %14s  %s\n", name.c_str(), parameters.c_str(),
                tokens.c_str(), steps.c_str(), flops.c_str(), time.c_str(), state.c_str());
  return text;
}

}  // namespace

std::string study_plan(const Study& study, const std::vector<StudyRun>& runs, StepFormula& formula) {
  std::map<std::pair<std::string, std::string>, double> measured;  // seconds of a step, by size and variant
  std::vector<bool> done;
  for (const StudyRun& run : runs) {
    const std::optional<StudyResult> result = read_result(study, run);
    done.push_back(result.has_value());
    if (result) measured[{run.size, run.variant}] = result->seconds / static_cast<double>(run.steps);
  }
  std::string text = row("run", "parameters", "tokens", "steps", "FLOPs", "time here", "");
  std::vector<Elsewhere> elsewhere;
  for (const int64_t gpus : {8, 64}) elsewhere.push_back({.gpus = gpus, .machine = {}});
  double seconds = 0, left = 0, flops = 0;
  bool by_formula = false, no_data = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    const StudyRun& run = runs[i];
    const RunSettings settings(study, run.settings);
    const TrainConfig& config = settings.config;
    const auto [spec, T, has_data, sample] = model_of(settings);
    no_data |= !has_data;
    const RunCost cost = cost_of(settings);
    const DType type = arithmetic(config).compute;
    double of_step = 0;
    if (const auto at = measured.find({run.size, run.variant}); at != measured.end()) {
      of_step = at->second;
    } else {
      of_step = formula.seconds(settings);
      by_formula = true;
    }
    const double time = of_step * static_cast<double>(run.steps);
    seconds += time, flops += cost.flops;
    if (!done[i]) left += time;
    text += row(run.name, human(cost.parameters, 3), human(cost.tokens, 3), std::to_string(run.steps),
                exponent(cost.flops), time_in_words(time), done[i] ? "finished" : "");
    if (config.run.strict || config.train.rounding == "stochastic") {
      elsewhere.clear();
      continue;
    }
    for (Elsewhere& other : elsewhere) {
      other.machine = machine_elsewhere({.name = str("h100x", other.gpus)}, type);
      const auto steps = static_cast<double>(run.steps);
      const StepPlan one = plan_step(config, *spec, T, {1, 1, 1}, other.machine, sample);
      other.on_one += one.seconds() * steps;
      other.longest = std::max(other.longest, one.seconds() * steps);
      other.one_fits &= one.needed() <= other.machine.memory;
      const std::vector<StepPlan> layouts = plan_layouts(config, *spec, T, other.gpus, other.machine, sample);
      const bool fits = !layouts.empty() && layouts.front().needed() <= other.machine.memory;
      other.all_fit &= fits;
      if (fits) other.in_order += layouts.front().seconds() * steps;
    }
  }
  text += row(str(runs.size(), " runs"), "", "", "", exponent(flops), time_in_words(seconds),
              left < seconds ? time_in_words(left) + " left" : "");
  if (by_formula) text += "time here by formula (braid train --dry-run): it may take half or twice as long\n";
  if (no_data) text += "the data are not here: the vocabulary is that of the settings\n";
  if (const std::string warning = shared_rate_warning(study); !warning.empty()) text += "warning: " + warning + "\n";
  for (const Elsewhere& other : elsewhere) text += str("on ", other.gpus, " H100: ", other.text(), "\n");
  if (elsewhere.empty())
    return text + "on GPUs: no time, as strict runs and stochastic rounding are for the CPU alone\n";
  return text + "GPUs at a third of the rate of their data sheet; validation and checkpoints are not counted\n";
}

}  // namespace braid::apps
