#include "apps/study/study_runs.h"

#include <algorithm>
#include <cmath>

#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/models/cost/size.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/families/seq2seq/pairs.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

const Study::Section& section_named(const std::vector<Study::Section>& sections, const std::string& name) {
  return *std::ranges::find(sections, name, &Study::Section::name);
}

std::vector<std::string> settings_of(const Study& study, const std::string& size, const std::string& variant) {
  std::vector<std::string> all = study.base.settings;
  for (const auto* section : {&section_named(study.sizes, size), &section_named(study.variants, variant)})
    all.insert(all.end(), section->settings.begin(), section->settings.end());
  return all;
}

int64_t length_of(const Study& study, const std::string& size, const std::string& variant) {
  const RunSettings run(study, settings_of(study, size, variant));
  return sequence_length(run.config, *model_here(run.config));
}

// Steps of a budget at a size: those of the baseline, so that all variants see the same tokens. Minutes are those of
// the variant.
int64_t steps_of(const Study& study, const std::string& size, const std::string& variant, double budget,
                 const Paces& paces) {
  double steps = budget;
  if (study.budget_unit == "minutes") {
    const auto pace = paces.find({size, variant});
    steps = pace == paces.end() ? 1 : std::floor(60 * budget / pace->second);
  } else if (study.budget_unit != "steps") {
    const RunSettings run(study, settings_of(study, size, study.baseline));
    const auto spec = model_here(run.config);
    if (study.budget_unit != "tokens") steps *= static_cast<double>(models::model_size(*spec).parameters);
    steps /= static_cast<double>(run.config.train.batch_size * run.config.train.accumulate *
                                 trained_tokens(run.config, *spec));
  }
  check(steps <= 1e12, ErrorKind::setting, [&] {
    return "bad study " + study.file + ": a budget of " + shortest(budget) + " " + study.budget_unit +
           " gives more steps than a run may have: expected at most 1e12";
  });
  return std::max<int64_t>(1, std::llround(steps));
}

StudyRun make_run(const Study& study, const std::string& size, const std::string& variant, double budget, int64_t seed,
                  std::optional<double> rate, bool search, const Paces& paces) {
  StudyRun run{
      .name = {}, .size = size, .variant = variant, .budget = budget, .seed = seed, .rate = rate, .search = search};
  const std::string unit = study.budget_unit == "tokens_per_parameter" ? "x"
                           : study.budget_unit == "steps"              ? ""
                                                                       : study.budget_unit.substr(0, 1);
  run.name = str(search ? "search-" : "", size, "-", variant, "-", shortest(budget), unit, "-s", seed,
                 search ? "-lr" + shortest(*rate) : "");
  run.steps = steps_of(study, size, variant, budget, paces);
  run.steps_known = study.budget_unit != "minutes" || paces.contains({size, variant});
  run.settings = settings_of(study, size, variant);
  if (rate) run.settings.push_back("optimizer.lr=" + shortest(*rate));
  run.settings.push_back(str("train.steps=", run.steps));
  const auto is_warmup = [](const std::string& setting) { return setting.starts_with("schedule.warmup="); };
  if (study.warmup_fraction > 0 && std::ranges::none_of(run.settings, is_warmup))
    run.settings.push_back(
        str("schedule.warmup=", std::max<int64_t>(1, std::llround(study.warmup_fraction * double(run.steps)))));
  if (study.coordinates) run.settings.push_back("checkpoint.keep_every=1");
  run.settings.push_back(str("run.seed=", seed));
  run.settings.push_back("run.out=" + (fs::path(study.out) / "runs" / run.name).string());
  return run;
}

}  // namespace

RunSettings::RunSettings(const Study& study, const std::vector<std::string>& settings)
    : schema(train_schema(config, model_settings())) {
  try {
    load_config(schema, study.config, settings);
  } catch (const Error& e) {  // the settings came from the study's file
    std::string words = e.what();
    if (const size_t at = words.find("the command line"); at != std::string::npos) words.replace(at, 16, study.file);
    fail(e.kind(), words);
  }
}

int64_t trained_tokens(const TrainConfig& config, const models::ModelSpec& model) {
  return (holds_preferences(config) ? 2 : 1) * sequence_length(config, model);
}

bool has_data(const TrainConfig& config) {
  return names_data(config) && (models::PairTask::of_path(config.data.path) ||
                                io::exists(fs::path(data_folder(config)) / models::text::manifest_name));
}

std::unique_ptr<const models::ModelSpec> model_here(const TrainConfig& config) {
  return has_data(config) ? model_for_data(config) : model_spec(config, 0);
}

void check_sequences(const Study& study) {
  for (const Study::Section& size : study.sizes) {
    const int64_t expected = length_of(study, size.name, study.baseline);
    for (const Study::Section& variant : study.variants) {
      const int64_t length = length_of(study, size.name, variant.name);
      check(length == expected, ErrorKind::setting, [&] {
        return str("bad study ", study.file, ": variants are compared on the same sequences: expected ", expected,
                   " tokens, as ", study.baseline, " has, found ", length, " of ", variant.name,
                   "; set model.block_size in [base] or [sizes.NAME]");
      });
    }
  }
}

std::vector<StudyRun> pace_runs(const Study& study) {
  std::vector<StudyRun> runs;
  if (study.budget_unit != "minutes") return runs;
  constexpr int64_t rounds = 5, steps = 30;
  for (int64_t round = 1; round <= rounds; ++round)
    for (const Study::Section& size : study.sizes)
      for (const Study::Section& variant : study.variants) {
        StudyRun run{.name = str("pace-", size.name, "-", variant.name, "-", round),
                     .size = size.name,
                     .variant = variant.name,
                     .seed = study.seeds.front(),
                     .steps = steps,
                     .rate = {},
                     .pace = true,
                     .turn = std::ssize(runs),
                     .settings = settings_of(study, size.name, variant.name)};
        for (const std::string& setting :
             {str("train.steps=", steps), std::string("schedule.warmup=1"), std::string("eval.samples=1"),
              str("run.seed=", run.seed), "run.out=" + (fs::path(study.out) / "runs" / run.name).string()})
          run.settings.push_back(setting);
        runs.push_back(std::move(run));
      }
  return runs;
}

std::vector<StudyRun> search_runs(const Study& study, const Paces& paces, const VariantRates& more) {
  std::vector<StudyRun> runs;
  if (!study.search) return runs;
  const Study::Search& search = *study.search;
  const auto add = [&](const std::string& variant, double rate, int64_t first_turn) {
    for (const int64_t seed : search.seeds) {
      runs.push_back(make_run(study, search.size, variant, search.budget, seed, rate, true, paces));
      runs.back().turn = first_turn++;
    }
  };
  for (const std::string& variant : search.variants)
    for (const double rate : search.rates) add(variant, rate, std::ssize(runs));
  // Parts need not know the same rates at a time, so the turn of a run depends on its variant alone.
  for (const auto& [variant, rate] : more)
    add(variant, rate, std::ranges::find(search.variants, variant) - search.variants.begin());
  return runs;
}

std::vector<StudyRun> main_runs(const Study& study, const VariantRates& rates, const Paces& paces) {
  std::vector<StudyRun> runs;
  for (const Study::Section& size : study.sizes)
    for (const double budget : study.budgets)
      for (const int64_t seed : study.seeds)
        for (const Study::Section& variant : study.variants) {
          std::optional<double> rate;
          for (const auto& [name, value] : rates)
            if (name == variant.name) rate = value;
          runs.push_back(make_run(study, size.name, variant.name, budget, seed, rate, false, paces));
          runs.back().turn = std::ssize(runs) - 1;
        }
  return runs;
}

}  // namespace braid::apps
