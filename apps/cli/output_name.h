// The names of files and folders that commands write.
#pragma once
#include <string>
#include <vector>

namespace braid::apps {

// Error(setting) where `name`, of the flag or word `flag`, is `-`, which would be a file and not standard output, or
// one of the files `inputs`, which the command reads: what it writes would replace them.
void check_output_name(const std::string& flag, const std::string& name, const std::vector<std::string>& inputs = {});

}  // namespace braid::apps
