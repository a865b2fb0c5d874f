// The file of a study: sizes x variants x budgets x seeds, as runs of `braid train`. README.md has an example and the
// meaning of every key.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/train/config/train_config.h"

namespace braid::apps {

struct Study {
  struct Section {
    std::string name;
    std::vector<std::string> settings;  // of braid train, key=value
  };
  struct Search {  // of the learning rate, for each of these variants by itself
    std::string size;
    double budget = 0;
    std::vector<double> rates;  // rising
    int64_t extend = 0;         // rates to add at most on each side, while the best one is at an edge
    std::vector<int64_t> seeds;
    std::vector<std::string> variants;
  };
  std::string file, name, out, baseline;
  std::string config;  // a TOML file of braid train below the sections; "": none
  std::vector<int64_t> seeds;
  std::string budget_unit;  // tokens_per_parameter (of the baseline's), tokens, steps or minutes
  std::vector<double> budgets;
  double warmup_fraction = 0;  // of the steps; 0: schedule.warmup
  bool families = false;       // in-context accuracy by family at every checkpoint of a run
  bool bits_per_byte = false;  // the unit of losses in the report; else nats per token
  std::string fingerprint;     // of the data that it is defined on; "": any
  bool coordinates = false;    // sizes of activations at every checkpoint, of which each step has one
  Section base;
  std::vector<Section> sizes, variants;
  std::optional<Search> search;
};

// Error(input) where the file cannot be read, Error(setting) for what it may not say.
Study read_study(const std::filesystem::path& file);
// "10m", "90s", "2h" in minutes. Error(setting) that names `key` for anything else.
double minutes_of(const std::string& text, const std::string& key);

// Seconds of a step, by size and variant: a budget in minutes is floor(60 minutes / pace) steps (pace.h).
using Paces = std::map<std::pair<std::string, std::string>, double>;

struct StudyRun {
  std::string name;  // of its folder, below runs/
  std::string size, variant;
  double budget = 0;
  int64_t seed = 0, steps = 0;
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

// A run of a few steps for each size and variant; none unless budgets are in minutes.
std::vector<StudyRun> pace_runs(const Study& study);
// Learning rates by variant.
using VariantRates = std::vector<std::pair<std::string, double>>;
// The runs of the search, in order, and then those of `more` rates; one step each where a pace is needed and not known.
// Error(setting) for settings that train would reject.
std::vector<StudyRun> search_runs(const Study& study, const Paces& paces, const VariantRates& more);
// The runs of the study. `rates`: the learning rate of each variant of the search, empty while it is not known.
std::vector<StudyRun> main_runs(const Study& study, const VariantRates& rates, const Paces& paces);

// V of the data of these settings, 0 where there are none here.
int64_t vocabulary_here(const TrainConfig& config);

}  // namespace braid::apps
