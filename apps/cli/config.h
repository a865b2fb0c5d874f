// Configurations as data: one table of settings from which reading, checking, --print-config and the resolved file are
// made. A value comes from its default, then the TOML file, then key=value arguments; the last one counts.
//
//   TrainConfig config;                       // default member initialisers are the defaults
//   Schema schema = train_schema(config);     // rows point at the members
//   load_config(schema, "run.toml", {"optimizer.lr=1e-3"});
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace braid::apps {

using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
using Target = std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::vector<std::string>*>;

// Allowed numbers. Bounds belong to the range unless marked open; NaN and infinities are never allowed.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;
  bool max_open = false;
};
inline Range at_least(double min) { return {.min = min}; }
inline Range above(double min) { return {.min = min, .min_open = true}; }
inline Range between(double min, double max) { return {.min = min, .max = max}; }
inline Range from_below(double min, double max) { return {.min = min, .max = max, .max_open = true}; }

struct Setting {
  std::string key;                                // "section.name"
  Target target;                                  // where the value lies; its type is the setting's type
  std::string help;                               // one line
  Range range = {};                               // numbers, and each number of a list
  std::vector<std::string> choices = {};          // allowed strings; empty: any
  bool (*accepts)(const std::string&) = nullptr;  // further condition on a string, described by `allowed`
  std::string allowed = "";
};

// A table whose keys are known to the caller only, such as the model's: values are taken with the type they have in
// the file. Keys may contain dots ("profile.gelu").
struct OpenTable {
  std::string prefix;                    // "model"
  std::vector<std::string> keys;         // without the prefix
  std::map<std::string, Value>* values;  // key without prefix -> value
};

struct Schema {
  std::string title;    // first comment line of the printed file
  std::string command;  // "braid train", named in messages
  std::vector<Setting> settings;
  std::vector<OpenTable> open = {};
};

// `file` may be empty: defaults and overrides only. Error(input) if it cannot be read, Error(setting) naming key,
// value, file and line, what is allowed, and the nearest name of an unknown key. On errors targets may be half set.
void load_config(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides);

// The full commented TOML; loading it gives the same values back, to the last bit.
std::string print_config(const Schema& schema);

// Keys whose values differ between two tables of the same schema, each as "optimizer.lr: 0.001 -> 0.002".
std::vector<std::string> differences(const Schema& before, const Schema& after);

// The value as TOML.
std::string toml_text(const Value& value);

}  // namespace braid::apps
