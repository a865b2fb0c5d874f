#include "apps/study/study_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "apps/cli/config_file.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"
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
const std::vector<std::string> kShared = {"data.",           "eval.", "dpo.", "parallel.", "train.batch_size",
                                          "train.accumulate"};

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
  static bool repeats(const auto& list) {
    return std::ranges::any_of(list, [&](const auto& x) { return std::ranges::count(list, x) > 1; });
  }
  // A list of numbers: integers, or strings such as "3e-3".
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
    if (repeats(list)) reject(entry, "different numbers");
    return list;
  }
  std::vector<int64_t> seeds(const ConfigEntry& entry) const {
    std::vector<int64_t> list;
    if (const auto* one = std::get_if<int64_t>(&entry.value)) list = {*one};
    if (const auto* all = std::get_if<std::vector<int64_t>>(&entry.value)) list = *all;
    if (list.empty()) reject(entry, "a list of integers");
    if (std::ranges::min(list) < 0 || repeats(list)) reject(entry, "different seeds from 0");
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
    if (key == "budget") {
      search.budget = number(entry);
      if (!(search.budget > 0) || !std::isfinite(search.budget)) reject(entry, "a number above 0");
    }
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
      if (search.variants.empty() || repeats(search.variants)) reject(entry, "a list of different names of variants");
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
    std::set<std::string> pairs;  // which name the folders of the runs
    for (const std::string& s : sizes)
      for (const std::string& v : variants)
        check(pairs.insert(s + "-" + v).second, ErrorKind::setting, [&] {
          return "bad study " + file_ + ": two runs would have the name " + s + "-" + v +
                 "; choose another name for the size " + s + " or the variant " + v;
        });
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

}  // namespace

Study read_study(const fs::path& file) { return Reader(file).read(); }

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

}  // namespace braid::apps
