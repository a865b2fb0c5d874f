// The model that a command is given by a path.
#pragma once
#include <filesystem>
#include <string>

#include "apps/cli/command.h"
#include "braid/models/folders/pretrained.h"

namespace braid::apps {

// The last part of a path as the user gave it: "demo" for out/demo, whatever its newest checkpoint is.
std::string model_name(const std::string& path);
// The model of a folder, on --device. Notes of the loader go to stderr.
models::LoadedModel load_on_device(const Arguments& arguments, const std::filesystem::path& folder,
                                   const models::LoadOptions& options);

}  // namespace braid::apps
