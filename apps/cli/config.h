// Configurations as data: one table of settings from which reading, checking, --print-config and the resolved file are
// made. A value comes from its default, then the TOML file, then key=value arguments; the last one counts.
//
//   TrainConfig config;                       // default member initialisers are the defaults
//   Schema schema = train_schema(config);     // rows point at the members
//   load_config(schema, "run.toml", {"optimizer.lr=1e-3"});
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "braid/models/model_spec.h"
#include "braid/models/settings.h"

namespace braid::apps {

using models::above, models::at_least, models::between, models::from_below, models::one_of, models::Setting,
    models::Value, models::ValueRule;

// A table whose keys depend on one of its values, such as the model's on its family: the values that were given are
// kept as they are. Keys may contain dots ("profile.gelu"). A value of `base` on the command line replaces all values
// that the file gives.
struct OpenTable {
  std::string prefix;                      // "model"
  std::string base;                        // "model.preset"
  std::vector<models::ModelSetting> keys;  // names without the prefix; one may stand there for each family
  std::map<std::string, Value>* values;    // key without prefix -> value; "null" for null, which TOML lacks
};

struct Schema {
  std::string title;    // first comment line of the printed file
  std::string command;  // "braid train", named in messages
  std::vector<Setting> settings;
  std::vector<OpenTable> open = {};
  // Names of settings in files of earlier versions, which are still read, and their names now.
  std::map<std::string, std::string> renamed = {};
  std::map<std::string, std::string> other_names = {};  // what other programs call a setting, for advice
  // Settings of earlier versions that are still read but never printed; after_loading() turns their values into those
  // of the settings that replaced them.
  std::vector<Setting> earlier = {};
  // Settings that follow from others. given: the names of those in the file and among the overrides. Returns notes for
  // the user.
  std::function<std::vector<std::string>(const std::set<std::string>& given)> after_loading = {};
};

// `file` may be empty: defaults and overrides only. Error(input) if it cannot be read, Error(setting) naming key,
// value, file and line, what is allowed, and the nearest name of an unknown key. On errors targets may be half set.
// Returns notes for the user: values of the file that the command line replaced, and those of after_loading().
std::vector<std::string> load_config(const Schema& schema, const std::filesystem::path& file,
                                     const std::vector<std::string>& overrides);

// The full commented TOML; loading it gives the same values back, to the last bit. Keys of the open table that were not
// given stand in comments, with the values that follow from the others where those are known: `in_effect`.
std::string print_config(const Schema& schema, const std::vector<models::ModelSetting>& in_effect = {});

// Keys whose values differ between two tables of the same schema, each as "optimizer.lr: 0.001 -> 0.002".
std::vector<std::string> differences(const Schema& before, const Schema& after);

// The value as TOML; a text that is a value of an open table as models::configure_model() takes it.
std::string toml_text(const Value& value);
std::string plain_text(const Value& value);

}  // namespace braid::apps
