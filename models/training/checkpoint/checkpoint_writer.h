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
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/manifest.h"

namespace braid::models {

// What a checkpoint stores, at one moment.
struct Snapshot {
  // The tensors share the memory of model and optimizer, which the next step changes.
  Snapshot(const Trainer& trainer, RunState at);
  // Copies of the tensors instead, on the CPU. buffers: their memory, made by the first call and used again by later
  // ones, when what was written from it is complete.
  void copy_tensors(std::vector<Tensor>& buffers);
  // Collective. Error(numerical) when a weight or a moment of any rank is NaN or Inf.
  void check_finite(const dist::Communicator& world) const;

  RunState state;
  std::unique_ptr<const ModelSpec> spec;
  LocalState tensors;
  std::string adapter;  // of LoRA, its adapter_config.json; "": none
};

class CheckpointWriter {
 public:
  using Files = std::vector<std::pair<std::string, std::string>>;

  // run: the run's folder, made by the first save. keep: number of the newest valid checkpoints to keep, at least 2.
  // keep_every: checkpoints of steps divisible by it are kept too (0: none), and so is the one marked as best.
  // check_folder: called on rank 0 before anything is made or renamed in the folder; throws if the folder no longer
  // belongs to the run.
  CheckpointWriter(
      std::filesystem::path run, int64_t keep, int64_t keep_every = 0, std::function<void()> check_folder = [] {})
      : run_(std::move(run)), keep_(keep), keep_every_(keep_every), check_folder_(std::move(check_folder)) {}

  // Writes run/step-N, then removes the checkpoints that are not to be kept. `settings` becomes kSettingsFile.
  // tokenizer: null for models without text. files: names and texts of further files of the model folder.
  // Collective: the bytes do not depend on the mesh. Error(numerical) when a weight or a moment is NaN or Inf,
  // Error(output) when a file cannot be written or read back; older checkpoints are then as before.
  void save(const Trainer& trainer, const text::Tokenizer* tokenizer, const RunState& state,
            const std::string& settings, const Files& files = {});
  // The same of a snapshot that is finite; reads neither model nor optimizer when its tensors are copies.
  void save(const Snapshot& snapshot, const dist::Communicator& world, const text::Tokenizer* tokenizer,
            const std::string& settings, const Files& files = {});
  // Removes the checkpoints that are not to be kept, those that are older than the newest `keep` valid ones, and what
  // an interrupted save or removal has left. Best effort: what cannot be removed now is left to the next call.
  // `verified`: a checkpoint that was just read back. Collective.
  void prune(const dist::Communicator& world, const std::filesystem::path& verified = {});
  // The file `best` names the checkpoint of this step, which was just saved or read; it is kept until another one is
  // marked, and the one that was marked before is removed unless it is to be kept for another reason. Collective.
  void mark_best(int64_t step, const dist::Communicator& world);
  // Writes the state before a step that failed, with any NaN, as run/failed-step-N (N: the failed step). The folder has
  // the files of a checkpoint but does not count as one: neither for a resume nor for `latest` or `keep`. A checkpoint
  // of the same state is renamed to it, unless it is the only valid one or the best: its weights are those that the
  // failed step was computed with. The two newest such folders are kept. Returns the folder. Collective.
  std::filesystem::path save_failed(const Trainer& trainer, const text::Tokenizer* tokenizer, const RunState& state,
                                    const std::string& settings, int64_t failed_step, const Files& files = {});

 private:
  struct Draft;
  void begin(Draft& draft, const text::Tokenizer* tokenizer, const std::string& settings, const Files& files);
  void write(Draft& draft);
  void publish(Draft& draft);
  void verify(const Draft& draft);
  void remove_surplus(const dist::Communicator& world, const std::filesystem::path& verified);
  int64_t best_step(const dist::Communicator& world) const;
  bool withdraw(int64_t step, const std::filesystem::path& to, const dist::Communicator& world);

  std::filesystem::path run_;
  int64_t keep_, keep_every_;
  std::function<void()> check_folder_;
  VerdictCache verdicts_;  // a save reads back what it wrote, not the older checkpoints
};

}  // namespace braid::models
