// Checkpoints of a run. A checkpoint is a model folder (folder.h) plus trainer/ (optimizer state, where the run stands,
// a manifest with checksums).
//
// A checkpoint appears whole or not at all: step-N.tmp/ is filled, every file synced, the manifest written last, then
// the folder is renamed to step-N/ and its parent synced. It counts only while every file still matches the manifest.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/pretrained.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/tensor/memory.h"

namespace braid::models {

// Where a run stands besides weights and optimizer. Seed, data and sequence length fix the order of the sequences;
// `samples` is the place in it, whatever the batch sizes were so far.
struct RunState {
  int64_t step = 0;      // optimizer steps done
  int64_t samples = 0;   // sequences trained on
  double elapsed_s = 0;  // of training, over all resumes
  int64_t seed = 0;
  int64_t seq_len = 0;
  std::string data_fingerprint;
  MemoryByUse memory = {};  // most that this process needed so far; written for people, not read back
};

std::string step_name(int64_t step);  // "step-00001000"
struct StepFolder {
  int64_t step;
  std::filesystem::path path;
};
std::vector<StepFolder> step_folders(const std::filesystem::path& run);  // finished ones by name, oldest first

// The run's settings as it was when a checkpoint was written, below the checkpoint's folder.
inline constexpr const char* kSettingsFile = "trainer/config.toml";

// Writes run/step-N, verifies it by reading it back, then removes all but the newest `keep` valid ones (at least 2).
// `settings` becomes kSettingsFile. tokenizer: null for models without text. Collective: all ranks write what they own
// into the same files at once, the bytes do not depend on the mesh. What goes wrong on any rank is an Error on all of
// them, and older checkpoints are as before (Error(output)).
void save_checkpoint(const std::filesystem::path& run, const Trainer& trainer, const text::Tokenizer* tokenizer,
                     const RunState& state, const std::string& settings, int64_t keep);

// "" when every file of the checkpoint matches its manifest, otherwise what is wrong. The ranks share the reading:
// collective, and the same on all of them.
std::string why_invalid(const std::filesystem::path& checkpoint, const dist::Communicator& world = {});

// The newest valid checkpoint, its path empty when the run has none at all. Damaged ones are passed over, with a
// sentence in `notes`. Error(no_checkpoint) when there are checkpoints and none is valid. Collective like why_invalid.
StepFolder newest_checkpoint(const std::filesystem::path& run, std::vector<std::string>& notes,
                             const dist::Communicator& world = {});

// Reads state.json; the folder must be valid.
RunState read_state(const std::filesystem::path& checkpoint);
// Fills model and optimizer from a valid checkpoint, whatever mesh wrote it; each rank reads its part only.
// Error(setting) when it belongs to a model of another configuration, to other arithmetic or to another optimizer.
void load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer);

}  // namespace braid::models
