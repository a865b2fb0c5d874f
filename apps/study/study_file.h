// The file of a study: sizes x variants x budgets x seeds. README.md has an example and the meaning of every key.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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
  double warmup_fraction = 0;  // of the steps, where no section sets schedule.warmup; 0: none
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

}  // namespace braid::apps
