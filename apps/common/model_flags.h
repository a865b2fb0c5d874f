// What the commands that load a model have in common.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/common/command.h"

namespace braid::app {

inline constexpr const char* kModelOverrides = "a key of config.json set to another value";

// --profile NAME
Flag profile_flag();
// --profile and the overrides as configuration keys, the overrides last.
std::vector<std::pair<std::string, std::string>> model_keys(const Arguments& arguments);
// What the loader decided on the way, on stderr.
void print_notes(const std::vector<std::string>& notes);

}  // namespace braid::app
