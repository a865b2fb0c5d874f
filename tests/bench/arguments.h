// The arguments NAME=VALUE of a benchmark.
#pragma once
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace braid::bench {

// Puts the values of the arguments into `settings`, whose keys are the names that there are. False, after a line on
// stderr, for any other argument.
inline bool read_arguments(int argc, char** argv, std::map<std::string, std::string>& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equal = argument.find('=');
    if (equal == std::string::npos || !settings.contains(argument.substr(0, equal))) {
      std::fprintf(stderr, "error: unknown setting %s\n", argv[i]);
      return false;
    }
    settings[argument.substr(0, equal)] = argument.substr(equal + 1);
  }
  return true;
}

// The same, but gives the arguments with other keys, as settings of a model.
inline std::vector<std::pair<std::string, std::string>> read_some_arguments(
    int argc, char** argv, std::map<std::string, std::string>& settings) {
  std::vector<std::pair<std::string, std::string>> others;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    const std::string key = text.substr(0, equals), value = equals == text.npos ? "" : text.substr(equals + 1);
    if (settings.contains(key)) {
      settings[key] = value;
    } else {
      others.emplace_back(key, value);
    }
  }
  return others;
}

}  // namespace braid::bench
