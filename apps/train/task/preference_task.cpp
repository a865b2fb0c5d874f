#include "apps/train/task/preference_task.h"

#include <filesystem>

#include "apps/cli/memory_text.h"
#include "apps/cli/plan_report.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/train/config/flops.h"
#include "apps/train/config/origin.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/data/local_samples.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {

namespace fs = std::filesystem;
using models::text::PreferenceData, models::text::Split;

namespace {

PreferenceData data_of(const TrainConfig& config, Split split) {
  return {config.data.path, split, sequence_length_of_data(config), config.data.long_samples == "cut"};
}

// The columns of a split, in the log.
struct Columns {
  LogName accuracy, margin, chosen_reward, rejected_reward, chosen_log_p, rejected_log_p;
};
constexpr Columns kTraining = {"accuracy",        "margin",      "reward_chosen",
                               "reward_rejected", "logp_chosen", "logp_rejected"};
constexpr Columns kValidation = {"val_accuracy",        "val_margin",      "val_reward_chosen",
                                 "val_reward_rejected", "val_logp_chosen", "val_logp_rejected"};

void set(LogRow& row, const Columns& columns, const models::PreferenceValues& sums) {
  row[columns.accuracy] = sums.preferred / sums.pairs;
  row[columns.margin] = (sums.chosen_reward - sums.rejected_reward) / sums.pairs;
  row[columns.chosen_reward] = sums.chosen_reward / sums.pairs;
  row[columns.rejected_reward] = sums.rejected_reward / sums.pairs;
  row[columns.chosen_log_p] = sums.chosen_log_probability / sums.pairs;
  row[columns.rejected_log_p] = sums.rejected_log_probability / sums.pairs;
}

}  // namespace

PreferenceTask::PreferenceTask(const TrainConfig& config)
    : config_(config),
      options_(preference_options(config)),
      train_{data_of(config, Split::train)},
      sampler_(samples(), static_cast<uint64_t>(config.run.seed)) {
  const auto reject = [&](bool given, const std::string& key, const std::string& found, const std::string& expected,
                          const std::string& why) {
    check(!given, ErrorKind::setting, [&] {
      return key + " does not go with preferences (" + why + "): expected " + expected + ", found " + found;
    });
  };
  check(!config.train.init_from.empty(), ErrorKind::setting,
        "preferences need trained weights, which are also the reference: expected train.init_from=FOLDER, found none");
  const std::string layout = "the probability of a whole sequence is computed by one process";
  reject(config.parallel.tensor > 1, "parallel.tensor", std::to_string(config.parallel.tensor), "1", layout);
  reject(config.parallel.context > 1, "parallel.context", std::to_string(config.parallel.context), "1", layout);
  const std::string other = "it makes the probabilities other ones than those of the reference";
  reject(config.model.dropout > 0, "model.dropout", shortest(config.model.dropout), "0", other);
  reject(config.train.z_loss > 0, "train.z_loss", shortest(config.train.z_loss), "0", other);
  reject(config.eval.tasks > 0, "eval.tasks", std::to_string(config.eval.tasks), "0", "their data have no such tasks");
  const TrainConfig::Data defaults;
  const std::string alone = "each sequence is one answer by itself";
  reject(config.data.packing != defaults.packing, "data.packing", config.data.packing, defaults.packing, alone);
  reject(config.data.documents != defaults.documents, "data.documents", config.data.documents, defaults.documents,
         alone);
  const bool validates = config.eval.interval > 0;
  if (train_.data.sequences().manifest().val.documents > 0) {
    try {
      validation_.emplace(data_of(config, Split::val));
    } catch (const io::SystemError&) {
      throw;
    } catch (const Error&) {  // such as no pair that is short enough
      if (validates) throw;
    }
  }
  check(validation_ || !validates, ErrorKind::setting, [&] {
    return "the val split of " + config.data.path + " has no pair to validate on: expected at least one; set " +
           "eval.interval=0 to train without validation, or prepare the data again with a larger --val-fraction";
  });
}

models::Batch PreferenceTask::Part::batch(const std::vector<int64_t>& pairs) const {
  models::Batch batch = data.batch(pairs);
  std::vector<double> losses;
  for (const int64_t pair : pairs)
    for (const int64_t i : {2 * pair, 2 * pair + 1}) losses.push_back(reference.at(static_cast<size_t>(i)));
  batch.add({models::kReferenceLosses, from_vector(losses, {std::ssize(losses)})});
  return batch;
}

std::vector<models::Batch> PreferenceTask::batches(int64_t first, const dist::ProcessMesh& mesh) const {
  std::vector<models::Batch> batches;
  for (const std::vector<int64_t>& pairs :
       models::text::step_samples(sampler_, first, config_.train.batch_size, config_.train.accumulate, mesh))
    batches.push_back(train_.batch(pairs));
  return batches;
}

void PreferenceTask::continue_after(const std::vector<models::EarlierLength>& earlier) {
  fail(ErrorKind::setting,
       str("a run on preferences keeps its sequence length, by which its reference was computed: "
           "expected ",
           earlier.back().seq_len, ", found ", sample_tokens(), "; undo the change of data.seq_len"));
}

std::unique_ptr<const models::ModelSpec> PreferenceTask::model_spec() const {
  auto spec = apps::model_spec(config_, tokenizer()->vocab_size());
  check_sampling(config_, *spec, *tokenizer());
  check_same_tokenizer(config_, train_.data.sequences().manifest());
  return spec;
}

void PreferenceTask::check_model(const models::Model& model) const {
  check(dynamic_cast<const models::LanguageModel*>(&model) != nullptr, ErrorKind::input,
        [&] { return "a model of type " + model.spec()->model_type() + " does not model text"; });
}

models::Batch PreferenceTask::typical_batch(const models::ModelSpec& model) const {
  return models::PreferenceObjective(options_).blank_batch(*model.make_shape_only(), 1, sample_tokens());
}

std::vector<std::pair<std::string, std::string>> PreferenceTask::start_work(const models::ModelSpec& model) const {
  const int64_t pairs = samples() + (validation_ ? validation_->data.size() : 0);
  const double flops = sample_flops(config_, model, typical_batch(model)).forward * static_cast<double>(pairs);
  return {{"reference", str("the weights of the start, by the log-probabilities of ", pairs, " pairs, computed once (",
                            flop_text(flops), "): ", bytes_text(16 * static_cast<double>(pairs)),
                            " of memory instead of a second model")}};
}

std::vector<double> PreferenceTask::losses(const models::Batch& batch) const {
  const NoGrad off;
  const models::Batch moved = batch.to(model_->device());
  return models::sequence_losses(*model_, moved.at("input_ids"), moved.at("targets")).to_vector<double>();
}

// The losses of all pairs, on all ranks. None: a stop signal came before the end.
std::optional<std::vector<double>> PreferenceTask::reference_losses(const PreferenceData& data) const {
  std::vector<double> all(static_cast<size_t>(2 * data.size()));
  for (const std::vector<int64_t>& pairs :
       models::text::validation_samples(data.size(), config_.train.batch_size, 0, *mesh_)) {
    if (mesh_->world.any(StopSignals::requested())) return std::nullopt;
    if (pairs.empty()) continue;  // a data rank may have no pair of a batch
    const std::vector<double> found = losses(data.batch(pairs));
    std::ranges::copy(found, all.begin() + 2 * pairs[0]);  // consecutive ones
  }
  return mesh_->data.all_reduce(from_vector(all, {std::ssize(all)})).to_vector<double>();
}

void PreferenceTask::read_reference() {
  const std::string path = (fs::path(config_.run.out) / kReferenceFile).string();
  check(io::exists(path), ErrorKind::input, [&] {
    return "the losses of the reference are missing: expected " + path +
           ", which the run wrote before its first step; " + "restore the file, or start anew in another run.out";
  });
  const io::SafetensorsFile file(path);
  const auto read = [&](Part& part, const std::string& name) {
    const io::TensorInfo* found = file.find(name);
    check(found || name != "val", ErrorKind::setting, [&] {
      return "the run in " + config_.run.out +
             " began without validation, so it has no losses of the reference for the val split: expected "
             "eval.interval=0; set it, or start anew in another run.out";
    });
    const Shape shape = {2 * part.data.size()};
    if (!found || found->dtype != DType::f64 || found->shape != shape)
      io::fail_input("the losses of the reference are not those of the data", path, -1,
                     str(name, " ", DType::f64, " ", shape), found ? str(found->dtype, " ", found->shape) : "none",
                     "restore the file, or start anew in another run.out");
    part.reference = file.load(name).to_vector<double>();
  };
  read(train_, "train");
  if (config_.eval.interval > 0) read(*validation_, "val");
}

bool PreferenceTask::start(const models::Model& model, const dist::ProcessMesh& mesh) {
  model_ = &dynamic_cast<const models::LanguageModel&>(model);
  mesh_ = &mesh;
  evaluation_.emplace(config_, *model_, mesh, *tokenizer(), std::vector<std::optional<models::text::Dataset>>());
  if (!models::step_folders(config_.run.out, mesh.world).empty()) {
    dist::run_on_all_ranks(mesh.world, [&] { read_reference(); });
    return true;
  }
  io::NamedTensors tensors;
  for (const auto& [name, part] : {std::pair{"train", &train_}, {"val", validation_ ? &*validation_ : nullptr}}) {
    if (!part) continue;
    auto losses = reference_losses(part->data);
    if (!losses) return false;
    part->reference = std::move(*losses);
    tensors.push_back({name, from_vector(part->reference, {std::ssize(part->reference)})});
  }
  dist::run_on_all_ranks(mesh.world, [&] {
    if (mesh.world.rank() == 0) io::save_safetensors((fs::path(config_.run.out) / kReferenceFile).string(), tensors);
  });
  return true;
}

bool PreferenceTask::validate(LogRow& row, const Attempt&) const {
  models::PreferenceSums of_pairs;
  for (const std::vector<int64_t>& pairs : models::text::validation_samples(
           validation_->data.size(), config_.train.batch_size, config_.eval.samples, *mesh_)) {
    if (mesh_->world.any(StopSignals::requested())) return false;
    if (pairs.empty()) continue;
    const models::Batch batch = validation_->batch(pairs);
    of_pairs.add(batch, losses(batch), options_);
  }
  const models::PreferenceValues sums = of_pairs.over(mesh_->data);
  row["val_loss"] = sums.loss / sums.pairs;
  set(row, kValidation, sums);
  return true;
}

void PreferenceTask::measure_step(LogRow& row, const std::vector<models::Batch>& batches,
                                  const models::StepMetrics& metrics) const {
  models::PreferenceSums of_pairs;
  std::span<const double> losses = metrics.sample_losses;
  for (const models::Batch& batch : batches) {
    const auto n = static_cast<size_t>(batch.samples());
    of_pairs.add(batch, losses.first(n), options_);
    losses = losses.subspan(n);
  }
  set(row, kTraining, of_pairs.over(mesh_->data));
}

void PreferenceTask::count(LogRow& row, int64_t samples, double rate) const {
  row["tokens"] = static_cast<double>(2 * samples * sample_tokens());
  row["tok_per_s"] = 2 * rate * static_cast<double>(sample_tokens());
}

std::string PreferenceTask::size_text() const {
  return str(samples(), " train pairs of sequences of ", sample_tokens());
}

std::vector<std::string> PreferenceTask::data_notes() const {
  const models::text::SampleCounts& n = train_.data.sequences().sample_counts();
  const double full = 100 * static_cast<double>(n.packed_tokens) / static_cast<double>(n.capacity);
  std::string text = str("the sequences are ", human(full, 3), "% full, the longest has ", n.longest, " tokens");
  const bool cut = config_.data.long_samples == "cut";
  if (n.too_long > 0 && cut)
    text += str("; ", n.too_long, " longer than data.seq_len = ", sample_tokens(), " are cut (data.long_samples)");
  if (train_.data.left_out() > 0)
    text += str("; ", train_.data.left_out(), " of ", n.samples / 2, " pairs are left out: a sequence ",
                cut ? "has no answer within " : "is longer than ", "data.seq_len = ", sample_tokens(),
                cut ? "" : " (data.long_samples=cut cuts it), or has no answer within it");
  return {text};
}

void check_no_preference_settings(const TrainConfig& config) {
  check(config.dpo == TrainConfig::Dpo(), ErrorKind::setting, [&] {
    return "dpo.* is for pairs of answers, and the data in " + config.data.path +
           " are none: expected a folder made by " + "braid prepare --preferences, or the defaults of all dpo settings";
  });
}

}  // namespace braid::apps
