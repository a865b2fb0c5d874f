// The arguments NAME=VALUE of a benchmark.
#pragma once
#include <cstdio>
#include <map>
#include <string>

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

}  // namespace braid::bench
