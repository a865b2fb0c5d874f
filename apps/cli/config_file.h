// TOML text as a flat list of keys and values. The only user of the TOML library is config_file.cpp.
#pragma once
#include <string>
#include <vector>

#include "apps/cli/config.h"

namespace braid::apps {

struct ConfigEntry {
  std::string key;  // "section.name"
  Value value;
  int64_t line = 0;            // 1-based
  bool empty_section = false;  // [key] without any key below it; no value
  std::string problem;         // not empty: the value is of a kind that no setting has
};

// Entries in the order of their lines. `name` is the file's name for messages. Error(setting) on text that is not TOML.
std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& name);

}  // namespace braid::apps
