// What --help and the manual pages are made of.
#pragma once
#include <string>
#include <vector>

#include "apps/cli/command.h"

namespace braid::apps {

struct HelpRow {
  std::string left;   // what to type
  std::string right;  // what it does
};
std::string usage(const Command& command);                   // "braid plot RUN... [flags]"
std::vector<HelpRow> argument_rows(const Command& command);  // positionals, key=value
std::vector<HelpRow> flag_rows(const Command& command);      // with --help
inline constexpr const char* program_summary = "tensors, autograd and DCFormer models, from text to trained model";
inline constexpr const char* program_usage = "braid COMMAND ...";
const std::vector<HelpRow>& program_notes();  // exit codes, mpirun, environment

}  // namespace braid::apps
