#include "braid/models/training/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <tuple>

#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/folders/adapter.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/training/checkpoint/sharded_safetensors.h"
#include "braid/models/training/stored_weights.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

constexpr const char* kIntact = "; older checkpoints are intact";
constexpr const char* kUnfinished = ".tmp";  // end of the name of a folder that is being written or removed

void check_output(const std::error_code& error, const char* action, const fs::path& path) {
  check(!error, ErrorKind::output,
        [&] { return str("cannot ", action, " ", path.string(), ": ", error.message(), kIntact); });
}

// Removes what a save or a removal that was interrupted has left behind.
void remove_unfinished(const fs::path& run) {
  std::error_code ignored;
  for (const fs::path& path : io::list_folder(run)) {
    const std::string name = path.filename().string();
    if ((name.starts_with("step-") || name.starts_with("failed-step-")) && name.ends_with(kUnfinished))
      fs::remove_all(path, ignored);
  }
}

// The name goes first, so that no half of a checkpoint bears it.
void remove_folder(const fs::path& folder) {
  std::error_code error;
  const fs::path unfinished = folder.string() + kUnfinished;
  fs::rename(folder, unfinished, error);
  if (!error) fs::remove_all(unfinished, error);
}

// Removes all but the two folders of failed steps that were written last.
void prune_failed(const fs::path& run) {
  std::vector<std::tuple<time_t, long, fs::path>> found;
  for (const fs::path& path : io::list_folder(run)) {
    const std::string name = path.filename().string();
    if (!name.starts_with("failed-") || !step_of_name(name.substr(7))) continue;
    if (const auto status = io::path_status(path); status && S_ISDIR(status->st_mode))
      found.emplace_back(status->st_mtim.tv_sec, status->st_mtim.tv_nsec, path);
  }
  std::sort(found.rbegin(), found.rend());
  for (size_t i = 2; i < found.size(); ++i) remove_folder(std::get<fs::path>(found[i]));
}

std::string describe(const RunState& state) {
  nlohmann::ordered_json json{{"step", state.step},           {"samples", state.samples},
                              {"elapsed_s", state.elapsed_s}, {"seed", state.seed},
                              {"seq_len", state.seq_len},     {"data_fingerprint", state.data_fingerprint},
                              {"measured", state.measured}};
  for (const auto& [seq_len, sequences] : state.earlier)
    json["earlier_lengths"].push_back({{"seq_len", seq_len}, {"sequences", sequences}});
  if (std::isfinite(state.val_loss)) json["val_loss"] = state.val_loss;
  if (state.comparable_after > 0) json["comparable_after"] = state.comparable_after;
  for (size_t i = 0; i < kMemoryUses; ++i)
    json["peak_memory_bytes"][name(static_cast<MemoryUse>(i))] = state.memory.at_peak[i];
  return json.dump(1) + "\n";
}

}  // namespace

// A checkpoint on its way to the disk. Rank 0 removes it when it is not published: on a full disk it would only keep
// others from writing.
struct CheckpointWriter::Draft {
  Draft(const fs::path& target, const Snapshot& from, const dist::Communicator& ranks)
      : snapshot(from),
        world(ranks),
        weights(as_stored(
            from.tensors.weights,
            [&](const std::string& name, const Shape& shape) { return from.spec->folder().stored(name, shape); })),
        adapter(as_stored(
            from.tensors.adapter,
            [&](const std::string& name, const Shape& shape) { return adapter_parameter(*from.spec, name, shape); })),
        path(target),
        temporary(path.string() + kUnfinished) {
    const io::Metadata format{{"format", "pt"}};
    files.emplace_back(kWeightsFile, ShardedSafetensorsWriter(temporary / kWeightsFile, weights, format));
    files.emplace_back(kOptimizerFile, ShardedSafetensorsWriter(temporary / kOptimizerFile, from.tensors.optimizer));
    if (!adapter.empty())
      files.emplace_back(kAdapterFile, ShardedSafetensorsWriter(temporary / kAdapterFile, adapter, format));
  }
  Draft(const Draft&) = delete;
  ~Draft() {
    std::error_code ignored;
    if (begun) fs::remove_all(temporary, ignored);
  }
  bool root() const { return world.rank() == 0; }

  const Snapshot& snapshot;
  const dist::Communicator& world;
  const std::vector<LocalTensor> weights, adapter;  // by the tensors of their files
  const fs::path path, temporary;
  std::vector<std::pair<std::string, ShardedSafetensorsWriter>> files;  // the large ones
  std::map<std::string, uint32_t> checksums;                            // on rank 0, of these
  bool begun = false;                                                   // `temporary` is there and belongs to this rank
};

Snapshot::Snapshot(const Trainer& trainer, RunState at)
    : state(std::move(at)), spec(trainer.model().spec()), tensors(trainer.local_state()) {
  if (!tensors.adapter.empty()) adapter = adapter_config(trainer.model());
}

void Snapshot::copy_tensors(std::vector<Tensor>& buffers) {
  size_t next = 0;
  for (std::vector<LocalTensor>* list : {&tensors.weights, &tensors.adapter, &tensors.optimizer}) {
    for (LocalTensor& t : *list) {
      if (!t.values) continue;
      if (next == buffers.size()) buffers.push_back(empty(t.values.shape(), t.values.dtype()));
      buffers[next].copy_(t.values);
      t.values = buffers[next++];
    }
  }
}

// Before rank 0 makes a folder: NaN on another rank leaves none behind.
void Snapshot::check_finite(const dist::Communicator& world) const {
  dist::run_on_all_ranks(world, [&] {
    for (const std::vector<LocalTensor>* list : {&tensors.weights, &tensors.adapter, &tensors.optimizer}) {
      for (const LocalTensor& t : *list) {
        check(!t.values || nn::all_finite(t.values), ErrorKind::numerical, [&] {
          return str(t.name, " contains NaN or Inf after step ", state.step, "; no checkpoint was written");
        });
      }
    }
  });
}

void CheckpointWriter::save(const Trainer& trainer, const text::Tokenizer* tokenizer, const RunState& state,
                            const std::string& settings, const Files& files) {
  const Snapshot snapshot(trainer, state);
  snapshot.check_finite(trainer.mesh().world);
  save(snapshot, trainer.mesh().world, tokenizer, settings, files);
}

void CheckpointWriter::save(const Snapshot& snapshot, const dist::Communicator& world, const text::Tokenizer* tokenizer,
                            const std::string& settings, const Files& files) {
  Draft draft(run_ / step_name(snapshot.state.step), snapshot, world);
  try {
    begin(draft, tokenizer, settings, files);
    write(draft);
    publish(draft);
    verify(draft);
  } catch (const Error& e) {  // on all ranks: what cannot be read back or listed cannot be saved either
    if (e.kind() != ErrorKind::input) throw;
    throw dist::CollectiveError(ErrorKind::output, str(e.what(), kIntact));
  }
  prune(world, draft.path);
}

void CheckpointWriter::prune(const dist::Communicator& world, const fs::path& verified) {
  try {
    remove_surplus(world, verified);
    dist::run_on_all_ranks(world, [&] {
      if (world.rank() == 0) remove_unfinished(run_);
    });
  } catch (const Error& e) {  // on all ranks; the next call tries again
    if (e.kind() != ErrorKind::input && e.kind() != ErrorKind::output) throw;
  }
}

fs::path CheckpointWriter::save_failed(const Trainer& trainer, const text::Tokenizer* tokenizer, const RunState& state,
                                       const std::string& settings, int64_t failed_step, const Files& files) {
  const dist::Communicator& world = trainer.mesh().world;
  fs::path folder = run_ / ("failed-" + step_name(failed_step));
  if (!withdraw(state.step, folder, world)) {
    const Snapshot snapshot(trainer, state);
    Draft draft(folder, snapshot, world);
    begin(draft, tokenizer, settings, files);
    write(draft);
    publish(draft);
  }
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() == 0) prune_failed(run_);
  });
  return folder;
}

// Renames the checkpoint of this step, so that it counts no longer. false: there is none, or it has to stay.
bool CheckpointWriter::withdraw(int64_t step, const fs::path& to, const dist::Communicator& world) {
  const std::vector<StepFolder> all = step_folders(run_, world);
  if (all.empty() || all.back().step != step) return false;
  const bool best = best_step(world) == step;
  std::optional<int64_t> older;
  for (auto it = all.rbegin() + 1; it != all.rend() && !best && !older; ++it) {
    if (!verdicts_.find_damage(it->path, world)) older = it->step;
  }
  if (!older) return false;
  verdicts_.forget(all.back().path);
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    check_folder_();
    std::error_code error;
    fs::remove_all(to, error);  // of an earlier failure of the same step
    fs::rename(all.back().path, to, error);
    check_output(error, "rename the checkpoint to", to);
    fs::last_write_time(to, fs::file_time_type::clock::now(), error);         // for prune_failed()
    io::write_file((run_ / kLatestFile).string(), step_name(*older) + "\n");  // syncs the folder
  });
  return true;
}

void CheckpointWriter::mark_best(int64_t step, const dist::Communicator& world) {
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    check_folder_();
    io::write_file((run_ / kBestFile).string(), step_name(step) + "\n");
  });
  prune(world, run_ / step_name(step));  // the best one before
}

void CheckpointWriter::begin(Draft& draft, const text::Tokenizer* tokenizer, const std::string& settings,
                             const Files& files) {
  dist::run_on_all_ranks(draft.world, [&] {
    if (!draft.root()) return;
    check_folder_();
    std::error_code error;
    if (!io::exists(run_)) io::make_folder(run_);
    remove_unfinished(run_);
    fs::create_directories(draft.temporary / "trainer", error);
    check_output(error, "create the folder", draft.temporary / "trainer");
    draft.begun = true;
    save_model_description(*draft.snapshot.spec, tokenizer, draft.temporary);
    for (const auto& [name, text] : files) io::write_file((draft.temporary / name).string(), text);
    io::write_file((draft.temporary / kStateFile).string(), describe(draft.snapshot.state));
    io::write_file((draft.temporary / kSettingsFile).string(), settings);
    if (!draft.adapter.empty()) io::write_file((draft.temporary / kAdapterConfig).string(), draft.snapshot.adapter);
    for (auto& [name, file] : draft.files) file.create();
  });
}

void CheckpointWriter::write(Draft& draft) {
  dist::run_on_all_ranks(draft.world, [&] {  // all ranks at once
    try {
      for (auto& [name, file] : draft.files) file.write();
    } catch (const Error& e) {
      fail(e.kind(), str(e.what(), kIntact));
    }
  });
  std::string mine;
  for (const auto& [name, file] : draft.files) mine += str(file.checksum_share(), " ");
  for (const std::string& shares : draft.world.gather_text(mine)) {
    std::istringstream in(shares);
    for (const auto& [name, file] : draft.files) {
      uint32_t share = 0;
      in >> share;
      draft.checksums[name] ^= share;
    }
  }
}

void CheckpointWriter::publish(Draft& draft) {
  dist::run_on_all_ranks(draft.world, [&] {
    if (!draft.root()) return;
    write_manifest(draft.temporary, draft.snapshot.state.step, draft.checksums);
    io::sync_folder(draft.temporary / "trainer");
    io::sync_folder(draft.temporary);
    check_folder_();
    std::error_code error;
    fs::remove_all(draft.path, error);  // an invalid one of the same step; a valid one would have been resumed from
    fs::rename(draft.temporary, draft.path, error);
    check_output(error, "put the checkpoint in place at", draft.path);
    draft.begun = false;
    io::sync_folder(run_);
  });
}

void CheckpointWriter::verify(const Draft& draft) {
  const std::optional<std::string> damage = verdicts_.find_damage(draft.path, draft.world);
  dist::run_on_all_ranks(draft.world, [&] {
    check(!damage, ErrorKind::output, [&] {
      return "the checkpoint " + draft.path.string() + " does not read back as written: " + *damage + kIntact;
    });
    if (!draft.root()) return;
    check_folder_();
    io::write_file((run_ / kLatestFile).string(), step_name(draft.snapshot.state.step) + "\n");
  });
}

// The step of the best checkpoint; -1: none.
int64_t CheckpointWriter::best_step(const dist::Communicator& world) const {
  int64_t best = 0;
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() == 0) best = named_step(run_ / kBestFile).value_or(-1);
  });
  return world.sum(best);  // 0 on the other ranks
}

void CheckpointWriter::remove_surplus(const dist::Communicator& world, const fs::path& verified) {
  const std::vector<StepFolder> all = step_folders(run_, world);
  const int64_t keep = std::max<int64_t>(keep_, 2), best = best_step(world);
  const auto stays = [&](const StepFolder& f) {
    return (keep_every_ > 0 && f.step % keep_every_ == 0) || f.step == best;
  };
  const int64_t surplus = std::ssize(all) - keep;
  if (surplus <= 0 || std::all_of(all.begin(), all.begin() + surplus, stays)) return;
  int64_t valid = 0;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (valid < keep) {
      if (it->path == verified || !verdicts_.find_damage(it->path, world)) ++valid;
      continue;
    }
    if (stays(*it) || it->path == verified) continue;
    if (world.rank() == 0) remove_folder(it->path);
    verdicts_.forget(it->path);
  }
}

}  // namespace braid::models
