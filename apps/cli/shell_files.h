// What a shell and `man` know of the program, made from the tables of the commands.
#pragma once
#include <string>
#include <vector>

#include "apps/cli/command.h"

namespace braid::apps {

// Writes completions for bash, zsh and fish and the manual pages into the folder, in the places below share/.
void write_shell_files(const std::vector<Command>& commands, const std::string& folder);

}  // namespace braid::apps
