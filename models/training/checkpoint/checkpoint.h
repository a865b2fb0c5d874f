// Finds, verifies and loads the checkpoints of a run. checkpoint_writer.h writes them. A checkpoint is a model folder
// (folders/pretrained.h) with one more folder:
//
//   step-00000040/  config.json, model.safetensors, tokenizer; with LoRA its adapter (folders/adapter.h)
//     trainer/      optimizer.safetensors, state.json (RunState), config.toml (settings), manifest.json (manifest.h)
#pragma once
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/folders/pretrained.h"
#include "braid/models/sequence_lengths.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/tensor/memory.h"

namespace braid::models {

// The position of a run besides weights and optimizer state. Seed, data and sequence lengths fix the order of the
// sequences (data/text/training_order.h); `samples` is the position in it, whatever the batch sizes were so far.
struct RunState {
  int64_t step = 0;      // optimizer steps done
  int64_t samples = 0;   // sequences trained on
  double elapsed_s = 0;  // of training, over all resumes
  int64_t seed = 0;
  int64_t seq_len = 0;
  std::string data_fingerprint;
  bool measured = true;  // false: interrupted before the validation and the sample that were due at this step
  double val_loss = std::numeric_limits<double>::quiet_NaN();  // of a validation after this very step; NaN: none
  int64_t comparable_after = 0;  // the step behind which the validations of the run compare with one of this state
  MemoryByUse memory = {};       // peak memory of this process so far; for people, not read back
  std::vector<EarlierLength> earlier = {};  // sequence lengths before seq_len, and the sequences of each
};

std::string step_name(int64_t step);                           // "step-00001000"
std::optional<int64_t> step_of_name(const std::string& name);  // of "step-00001000"; none: no such name
struct StepFolder {
  int64_t step;
  std::filesystem::path path;
};
// The state of a run that continues with sequences of this length.
RunState with_length(RunState state, int64_t seq_len);
// The checkpoints of a run by name, oldest first; unfinished ones are not among them. Collective with a communicator:
// the list of rank 0.
std::vector<StepFolder> step_folders(const std::filesystem::path& run);
std::vector<StepFolder> step_folders(const std::filesystem::path& run, const dist::Communicator& world);

// Files of a run that name one of its checkpoints, in one line: the newest, and the one with the lowest validation
// loss.
inline constexpr const char* kLatestFile = "latest";
inline constexpr const char* kBestFile = "best";
// The step of the checkpoint that the file names; none when there is no such file.
std::optional<int64_t> named_step(const std::filesystem::path& file);

// The settings of the run when the checkpoint was written; relative to the checkpoint.
inline constexpr const char* kSettingsFile = "trainer/config.toml";

// The newest valid checkpoint; its path is empty when the run has none at all. Damaged ones are skipped, each with a
// message in `notes`; one that cannot be read for another reason (io::SystemError) is not. Error(no_checkpoint) when
// none is valid though there are some or `latest` names one. Collective.
StepFolder newest_checkpoint(const std::filesystem::path& run, std::vector<std::string>& notes,
                             const dist::Communicator& world = {});

// Reads state.json of a valid checkpoint.
RunState read_state(const std::filesystem::path& checkpoint);
// Error(setting) when the checkpoint's model is another one, naming the settings that differ. The longest sequence may
// differ where no weight depends on it, and the settings of positions with it (ModelSetting::of_context).
void check_same_model(const std::filesystem::path& checkpoint, const ModelSpec& model);
// Fills model and optimizer from a valid checkpoint, whatever mesh wrote it; each rank reads only its own elements.
// Error(setting) when the model's configuration, the dtype of the parameters or the kind of optimizer differs.
void load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer);

}  // namespace braid::models
