#include "apps/study/study_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/cli/config_file.h"
#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "braid/models/cost/size.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kUnits = {"tokens_per_parameter", "tokens", "steps", "minutes"};
const std::vector<std::string> kStudyKeys = {
    "name",  "out",     "baseline",        "config",   "seeds",  "tokens_per_parameter", "tokens",
    "steps", "minutes", "warmup_fraction", "families", "metric", "fingerprint",          "coordinates"};
const std::vector<std::string> kSearchKeys = {"size", "budget", "rates", "extend", "seeds", "variants"};
// Settings of which a study decides, and those in which variants must agree for their losses to be comparable.
const std::vector<std::string> kDecided = {"run.out", "run.seed", "train.steps", "train.epochs"};
const std::vector<std::string> kShared = {"data.", "eval.", "parallel.", "train.batch_size", "train.accumulate"};

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file.string()) {
    constexpr int64_t limit = 1 << 20;
    entries_ = parse_config(io::read_text_file(file_, limit), file_);
  }

  Study read() {
    for (const ConfigEntry& entry : entries_) {
      check(entry.problem.empty(), ErrorKind::setting, [&] { return at(entry) + ": " + entry.problem; });
      const std::vector<std::string> parts = split(entry.key, '.');
      const std::string& section = parts[0];
      if (section == "study" && parts.size() == 2)
        read_study_key(entry, parts[1]);
      else if (section == "search" && parts.size() == 2)
        read_search_key(entry, parts[1]);
      else if (entry.empty_section && parts.size() == 1 && (section == "study" || section == "base"))
        continue;
      else if (entry.empty_section && parts.size() == 1 && section == "search")
        study_.search.emplace();
      else if (entry.empty_section && parts.size() > 1 && (section == "sizes" || section == "variants"))
        named(section == "sizes" ? study_.sizes : study_.variants, parts[1]);
      else if (section == "base" && parts.size() > 1)
        add(study_.base, entry, rest(entry.key, 1));
      else if ((section == "sizes" || section == "variants") && parts.size() > 2)
        add(named(section == "sizes" ? study_.sizes : study_.variants, parts[1]), entry, rest(entry.key, 2));
      else
        fail(ErrorKind::setting,
             "unknown key '" + preview(entry.key) + "' in " + where(entry) +
                 ": expected the sections [study], [base], [sizes.NAME], [variants.NAME], [search]");
    }
    study_.file = file_;
    complete();
    return std::move(study_);
  }

 private:
  static std::string rest(const std::string& key, int levels) {
    size_t begin = 0;
    for (int i = 0; i < levels; ++i) begin = key.find('.', begin) + 1;
    return key.substr(begin);
  }
  std::string where(const ConfigEntry& entry) const { return str(file_, " line ", entry.line); }
  std::string at(const ConfigEntry& entry) const {
    return "bad value for " + preview(entry.key) + " in " + where(entry);
  }
  [[noreturn]] void reject(const ConfigEntry& entry, const std::string& expected) const {
    fail(ErrorKind::setting, at(entry) + ": expected " + expected + ", found " + preview(toml_text(entry.value)));
  }

  std::string text(const ConfigEntry& entry) const {
    if (const auto* value = std::get_if<std::string>(&entry.value); value && !value->empty()) return *value;
    reject(entry, "a text");
  }
  // A list of numbers: whole ones, or texts such as "3e-3".
  std::vector<double> numbers(const ConfigEntry& entry) const {
    std::vector<double> list;
    if (std::holds_alternative<int64_t>(entry.value) || std::holds_alternative<double>(entry.value))
      list = {number(entry)};  // a list of one
    if (const auto* whole = std::get_if<std::vector<int64_t>>(&entry.value)) list.assign(whole->begin(), whole->end());
    if (const auto* texts = std::get_if<std::vector<std::string>>(&entry.value))
      for (const std::string& word : *texts) {
        const std::optional<double> value = parse_float(word);
        if (!value) reject(entry, "a list of numbers");
        list.push_back(*value);
      }
    if (list.empty() || std::ranges::any_of(list, [](double x) { return !(x > 0) || !std::isfinite(x); }))
      reject(entry, "a list of numbers above 0, [1, 2] or [\"1e-3\", \"3e-3\"]");
    return list;
  }
  std::vector<int64_t> seeds(const ConfigEntry& entry) const {
    std::vector<int64_t> list;
    if (const auto* one = std::get_if<int64_t>(&entry.value)) list = {*one};
    if (const auto* all = std::get_if<std::vector<int64_t>>(&entry.value)) list = *all;
    if (list.empty()) reject(entry, "a list of integers");
    if (std::ranges::any_of(list, [&](int64_t s) { return s < 0 || std::ranges::count(list, s) > 1; }))
      reject(entry, "different seeds from 0");
    return list;
  }
  double number(const ConfigEntry& entry) const {
    if (const auto* whole = std::get_if<int64_t>(&entry.value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&entry.value)) return *real;
    reject(entry, "a number");
  }

  void read_study_key(const ConfigEntry& entry, const std::string& key) {
    if (key == "name") study_.name = text(entry);
    if (key == "out") study_.out = text(entry);
    if (key == "baseline") study_.baseline = text(entry);
    if (key == "config") study_.config = (fs::path(file_).parent_path() / text(entry)).string();
    if (key == "seeds") study_.seeds = seeds(entry);
    if (key == "warmup_fraction") {
      study_.warmup_fraction = number(entry);
      if (!(study_.warmup_fraction >= 0 && study_.warmup_fraction < 1)) reject(entry, "a number from 0 to below 1");
    }
    if (key == "metric") {
      const std::vector<std::string> metrics = {"nats-per-token", "bits-per-byte"};
      const std::string metric = text(entry);
      if (std::ranges::count(metrics, metric) == 0) reject(entry, "one of " + join(metrics, ", "));
      study_.bits_per_byte = metric == metrics[1];
    }
    if (key == "fingerprint") study_.fingerprint = text(entry);
    for (auto& [name, target] : {std::pair("families", &study_.families), {"coordinates", &study_.coordinates}}) {
      if (key != name) continue;
      const auto* on = std::get_if<bool>(&entry.value);
      if (!on) reject(entry, "true or false");
      *target = *on;
    }
    if (std::ranges::count(kUnits, key) > 0) {
      check(study_.budget_unit.empty(), ErrorKind::setting, [&] {
        return at(entry) + ": expected one of " + join(kUnits, ", ") + ", found " + study_.budget_unit + " as well";
      });
      study_.budget_unit = key;
      study_.budgets = numbers(entry);
    }
    check(std::ranges::count(kStudyKeys, key) > 0, ErrorKind::setting, [&] {
      return "unknown key 'study." + preview(key) + "' in " + where(entry) + did_you_mean(key, kStudyKeys);
    });
  }

  void read_search_key(const ConfigEntry& entry, const std::string& key) {
    check(std::ranges::count(kSearchKeys, key) > 0, ErrorKind::setting, [&] {
      return "unknown key 'search." + preview(key) + "' in " + where(entry) + did_you_mean(key, kSearchKeys);
    });
    if (!study_.search) study_.search.emplace();
    Study::Search& search = *study_.search;
    if (key == "size") search.size = text(entry);
    if (key == "budget") search.budget = number(entry);
    if (key == "rates") search.rates = numbers(entry), std::ranges::sort(search.rates);
    if (key == "extend") {
      const auto* times = std::get_if<int64_t>(&entry.value);
      if (!times || *times < 0) reject(entry, "an integer from 0");
      search.extend = *times;
    }
    if (key == "seeds") search.seeds = seeds(entry);
    if (key == "variants") {
      if (const auto* one = std::get_if<std::string>(&entry.value)) search.variants = {*one};
      if (const auto* list = std::get_if<std::vector<std::string>>(&entry.value)) search.variants = *list;
      if (search.variants.empty()) reject(entry, "a list of names of variants");
    }
  }

  static Study::Section& named(std::vector<Study::Section>& sections, const std::string& name) {
    for (Study::Section& section : sections)
      if (section.name == name) return section;
    return sections.emplace_back(Study::Section{name, {}});
  }

  void add(Study::Section& section, const ConfigEntry& entry, const std::string& key) {
    check(std::ranges::count(kDecided, key) == 0, ErrorKind::setting, [&] {
      return "unknown key '" + preview(entry.key) + "' in " + where(entry) + ": the study sets " + key +
             "; use [study] out, seeds, " + join(kUnits, ", ");
    });
    const bool of_variant = entry.key.starts_with("variants.");
    const bool shared = std::ranges::any_of(kShared, [&](const std::string& p) { return key.starts_with(p); });
    check(!of_variant || !shared, ErrorKind::setting, [&] {
      return "bad key '" + preview(entry.key) + "' in " + where(entry) +
             ": variants are compared on the same data and batches; set " + key + " in [base] or [sizes.NAME]";
    });
    section.settings.push_back(key + "=" + plain_text(entry.value));
  }

  void need(bool ok, const std::string& expected) const {
    check(ok, ErrorKind::setting, [&] { return "bad study " + file_ + ": expected " + expected + ", found none"; });
  }
  void check_name(const std::string& name) const {
    const bool ok = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_';
    });
    check(ok, ErrorKind::setting,
          [&] { return "bad name '" + preview(name) + "' in " + file_ + ": expected letters, digits, - and _"; });
  }

  void complete() {
    if (study_.name.empty()) study_.name = fs::path(file_).stem().string();
    check_name(study_.name);
    need(!study_.out.empty(), "study.out, a folder");
    need(!study_.seeds.empty(), "study.seeds");
    need(!study_.budgets.empty(), "one of study." + join(kUnits, ", study."));
    need(!study_.variants.empty(), "a section [variants.NAME]");
    if (study_.sizes.empty()) study_.sizes.push_back({"one", {}});
    std::vector<std::string> sizes, variants;
    for (const auto& s : study_.sizes) check_name(s.name), sizes.push_back(s.name);
    for (const auto& v : study_.variants) check_name(v.name), variants.push_back(v.name);
    if (study_.baseline.empty()) study_.baseline = variants.front();
    check(!study_.coordinates || (study_.sizes.size() > 1 && study_.budgets.size() == 1), ErrorKind::setting, [&] {
      return str("bad study ", file_,
                 ": study.coordinates compares widths after some steps: expected two or more "
                 "sections [sizes.NAME] and one budget, found ",
                 study_.sizes.size(), " and ", study_.budgets.size());
    });
    const auto known = [&](const std::string& name, const std::vector<std::string>& names, const std::string& key) {
      check(std::ranges::count(names, name) > 0, ErrorKind::setting, [&] {
        return "bad value for " + key + " in " + file_ + ": expected one of " + join(names, ", ") + ", found " +
               preview(name);
      });
    };
    known(study_.baseline, variants, "study.baseline");
    if (!study_.search) return;
    Study::Search& search = *study_.search;
    need(!search.rates.empty(), "search.rates");
    need(search.extend == 0 || search.rates.front() < search.rates.back(),
         "two search.rates, between which search.extend finds its factor");
    if (search.size.empty()) search.size = sizes.front();
    if (search.budget == 0) search.budget = study_.budgets.front();
    if (search.seeds.empty()) search.seeds = {study_.seeds.front()};
    if (search.variants.empty()) search.variants = variants;
    known(search.size, sizes, "search.size");
    for (const std::string& name : search.variants) known(name, variants, "search.variants");
  }

  std::string file_;
  std::vector<ConfigEntry> entries_;
  Study study_;
};

const Study::Section& section_named(const std::vector<Study::Section>& sections, const std::string& name) {
  return *std::ranges::find(sections, name, &Study::Section::name);
}

std::vector<std::string> settings_of(const Study& study, const std::string& size, const std::string& variant) {
  std::vector<std::string> all = study.base.settings;
  for (const auto* section : {&section_named(study.sizes, size), &section_named(study.variants, variant)})
    all.insert(all.end(), section->settings.begin(), section->settings.end());
  return all;
}

// Steps of a budget at a size: those of the baseline, so that all variants see the same tokens. Minutes are those of
// the variant.
int64_t steps_of(const Study& study, const std::string& size, const std::string& variant, double budget,
                 const Paces& paces) {
  if (study.budget_unit == "steps") return static_cast<int64_t>(std::llround(budget));
  if (study.budget_unit == "minutes") {
    const auto pace = paces.find({size, variant});
    return pace == paces.end() ? 1 : std::max<int64_t>(1, static_cast<int64_t>(60 * budget / pace->second));
  }
  const RunSettings run(study, settings_of(study, size, study.baseline));
  const auto spec = model_spec(run.config, vocabulary_here(run.config));
  const double per_step = static_cast<double>(run.config.train.batch_size * run.config.train.accumulate *
                                              sequence_length(run.config, *spec));
  const double tokens =
      study.budget_unit == "tokens" ? budget : budget * static_cast<double>(models::model_size(*spec).parameters);
  return std::max<int64_t>(1, std::llround(tokens / per_step));
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
  run.settings = settings_of(study, size, variant);
  if (rate) run.settings.push_back("optimizer.lr=" + shortest(*rate));
  run.settings.push_back(str("train.steps=", run.steps));
  if (study.warmup_fraction > 0)
    run.settings.push_back(
        str("schedule.warmup=", std::max<int64_t>(1, std::llround(study.warmup_fraction * double(run.steps)))));
  if (study.coordinates) run.settings.push_back("checkpoint.keep_every=1");
  run.settings.push_back(str("run.seed=", seed));
  run.settings.push_back("run.out=" + (fs::path(study.out) / "runs" / run.name).string());
  return run;
}

}  // namespace

Study read_study(const fs::path& file) { return Reader(file).read(); }

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

int64_t vocabulary_here(const TrainConfig& config) {
  return names_data(config) && io::exists(fs::path(data_folder(config)) / "dataset.json") ? vocabulary_of(config) : 0;
}

double minutes_of(const std::string& text, const std::string& key) {
  const std::map<char, double> units = {{'s', 1.0 / 60}, {'m', 1}, {'h', 60}};
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  const std::optional<double> number =
      unit == units.end() ? std::nullopt : parse_float(text.substr(0, text.size() - 1));
  check(number && *number > 0 && std::isfinite(*number), ErrorKind::setting, [&] {
    return "bad value for " + key + ": expected a time such as 90s, 10m or 2h, found '" + preview(text) + "'";
  });
  return *number * unit->second;
}

std::vector<StudyRun> pace_runs(const Study& study) {
  std::vector<StudyRun> runs;
  if (study.budget_unit != "minutes") return runs;
  constexpr int64_t steps = 30;
  for (const Study::Section& size : study.sizes)
    for (const Study::Section& variant : study.variants) {
      StudyRun run{.name = "pace-" + size.name + "-" + variant.name,
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
