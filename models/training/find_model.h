#pragma once
#include <filesystem>

namespace braid::models {

// The model folder that `path` names: itself when it holds a config.json, otherwise the newest valid checkpoint of the
// run folder `path`. Error(input) when there is no model.
std::filesystem::path find_model(const std::filesystem::path& path);

}  // namespace braid::models
