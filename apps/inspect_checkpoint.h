// What braid inspect shows of a run folder or of one of its checkpoints.
#pragma once
#include <filesystem>

namespace braid::apps {

// Whether the path is a checkpoint or a run folder.
bool holds_checkpoints(const std::filesystem::path& path);

// Prints the files of a run folder, or of a checkpoint: their sizes and what they hold, whether they match the
// manifest, the position of the run, and the first bytes of the weights. Error(no_checkpoint) where a checkpoint is
// damaged.
void inspect_checkpoint(const std::filesystem::path& path);

}  // namespace braid::apps
