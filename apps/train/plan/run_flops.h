// FLOPs of training by the settings that a run folder has.
#pragma once
#include <filesystem>

namespace braid::apps {

// FLOPs of a token, forward and backward, by config.resolved.toml and the newest checkpoint of the run folder, and by
// the documents of its data, if they are still there. NaN where that file is missing. Error(setting), Error(input)
// where it cannot be read.
double training_flops_per_token(const std::filesystem::path& run);

}  // namespace braid::apps
