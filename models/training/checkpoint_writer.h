// Writes the checkpoints of a run. A checkpoint appears entirely or not at all:
//
//   begin    step-N.tmp/ with the small files, the large ones reserved in their full size
//   write    all ranks: their elements of weights and optimizer state, synced
//   publish  the manifest, then everything synced, then the rename to step-N/ and a sync of the run's folder
//   verify   all ranks: the files read back and compared with the manifest; then `latest` names the checkpoint
//
// Each phase ends with one collective join of errors: an error on any rank is an error on all of them.
#pragma once
#include <filesystem>
#include <string>

#include "braid/models/training/checkpoint.h"
#include "braid/models/training/manifest.h"

namespace braid::models {

class CheckpointWriter {
 public:
  // run: the run's folder, made by the first save. keep: valid checkpoints to keep, at least 2.
  CheckpointWriter(std::filesystem::path run, int64_t keep) : run_(std::move(run)), keep_(keep) {}

  // Writes run/step-N, then removes all but the newest `keep` valid checkpoints. `settings` becomes kSettingsFile.
  // tokenizer: null for models without text.
  // Collective: the bytes do not depend on the mesh. Error(numerical) when a weight is NaN or Inf, Error(output) when a
  // file cannot be written; older checkpoints are then as before.
  void save(const Trainer& trainer, const text::Tokenizer* tokenizer, const RunState& state,
            const std::string& settings);

 private:
  struct Draft;
  void begin(Draft& draft, const text::Tokenizer* tokenizer, const std::string& settings);
  void write(Draft& draft);
  void publish(Draft& draft);
  void verify(const Draft& draft);
  void prune(const std::filesystem::path& newest, const dist::Communicator& world);

  std::filesystem::path run_;
  int64_t keep_;
  VerdictCache verdicts_;  // a save reads back what it wrote, not the older checkpoints
};

}  // namespace braid::models
