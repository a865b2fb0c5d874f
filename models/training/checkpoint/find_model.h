#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace braid::models {

// The model folder that `path` names:
//
//   a folder with a config.json             itself
//   a run folder                            its newest valid checkpoint
//   RUN/latest, RUN/best                    the newest valid checkpoint of RUN, the best one by validation
//
// notes: what a user must know, for example that the newest checkpoint is damaged and an older one was taken.
// Error(input) when there is no model, Error(no_checkpoint) when there are checkpoints and the one that was named is
// not valid.
std::filesystem::path find_model(const std::filesystem::path& path, std::vector<std::string>& notes);
std::filesystem::path find_model(const std::filesystem::path& path);

// Does a training run write into this folder?
bool is_run_folder(const std::filesystem::path& path);
// Error(setting) when it does: a model in it would be found in place of the checkpoints.
void check_no_run_folder(const std::filesystem::path& path);

}  // namespace braid::models
