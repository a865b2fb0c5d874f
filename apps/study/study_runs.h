// The runs of a study, as settings of `braid train`.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/study/study_file.h"
#include "apps/train/config/train_config.h"

namespace braid::apps {

// Seconds of a step, by size and variant: a budget in minutes is floor(60 minutes / pace) steps (pace.h).
using Paces = std::map<std::pair<std::string, std::string>, double>;

struct StudyRun {
  std::string name;  // of its folder, below runs/
  std::string size, variant;
  double budget = 0;
  int64_t seed = 0, steps = 0;
  bool steps_known = true;            // false: a pace is needed
  std::optional<double> rate;         // of the search
  bool search = false;                // a run of the search
  bool pace = false;                  // a run that measures how long a step takes
  int64_t turn = 0;                   // of N parts, the one with turn % N + 1 trains it
  std::vector<std::string> settings;  // of braid train, key=value; a later one counts
};

// The settings of a run as `braid train` has them. Not movable: the schema points into the configuration.
struct RunSettings {
  TrainConfig config;
  Schema schema;
  RunSettings(const Study& study, const std::vector<std::string>& settings);
  RunSettings(const RunSettings&) = delete;
  RunSettings& operator=(const RunSettings&) = delete;
};

// Error(setting) for a variant with sequences of another length than the baseline's at a size: losses could not be
// compared.
void check_sequences(const Study& study);
// Runs of a few steps, five for each size and variant in turn; none unless budgets are in minutes.
std::vector<StudyRun> pace_runs(const Study& study);
// Learning rates by variant.
using VariantRates = std::vector<std::pair<std::string, double>>;
// The runs of the search, in order, and then those of `more` rates; one step each where a pace is needed and not known.
// Error(setting) for settings that train would reject.
std::vector<StudyRun> search_runs(const Study& study, const Paces& paces, const VariantRates& more);
// The runs of the study. `rates`: the learning rate of each variant of the search, empty while it is not known.
std::vector<StudyRun> main_runs(const Study& study, const VariantRates& rates, const Paces& paces);

// Tokens that a sample is trained on; of a pair of answers those of both.
int64_t trained_tokens(const TrainConfig& config, const models::ModelSpec& model);
// Whether the data of these settings are here, and the model: as it fits them, or where they are not, by its settings.
bool has_data(const TrainConfig& config);
std::unique_ptr<const models::ModelSpec> model_here(const TrainConfig& config);

}  // namespace braid::apps
