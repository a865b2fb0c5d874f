#include "apps/train/task/pair_task.h"

#include <algorithm>

#include "apps/cli/signals.h"
#include "apps/train/task/from_config.h"
#include "braid/models/data/local_samples.h"
#include "braid/models/training/trainer.h"

namespace braid::apps {

using models::text::Split;

PairTrainingTask::PairTrainingTask(const TrainConfig& config, models::PairTask task)
    : config_(config), task_(std::move(task)), sampler_(samples(), static_cast<uint64_t>(config.run.seed)) {
  reject_text_settings(config, "are pairs of sequences");
  check(config.sample.prompt.empty(), ErrorKind::setting, [&] {
    return "sample.prompt is for text, and " + config.data.path + " are pairs of sequences: expected none, found " +
           config.sample.prompt;
  });
}

std::vector<models::Batch> PairTrainingTask::batches(int64_t first, const dist::ProcessMesh& mesh) const {
  std::vector<models::Batch> batches;
  for (std::vector<int64_t>& pairs :
       models::text::step_positions(first, config_.train.batch_size, config_.train.accumulate, mesh)) {
    const Tensor keys = models::text::sample_keys(dropout_key(config_), pairs);
    for (int64_t& pair : pairs) pair = sampler_.at(pair);
    batches.push_back(pair_batch(task_, Split::train, pairs));
    if (config_.model.dropout > 0) batches.back().add({models::kSampleKeys, keys});
  }
  return batches;
}

std::unique_ptr<const models::ModelSpec> PairTrainingTask::model_spec() const {
  return pair_model_spec(config_, task_);
}

void PairTrainingTask::check_model(const models::Model& model) const {
  check(dynamic_cast<const models::Seq2Seq*>(&model) != nullptr, ErrorKind::input,
        [&] { return "a model of type " + model.spec()->model_type() + " does not read pairs of sequences"; });
}

bool PairTrainingTask::start(const models::Model& model, const dist::ProcessMesh& mesh) {
  model_ = &dynamic_cast<const models::Seq2Seq&>(model);
  mesh_ = &mesh;
  return true;
}

std::vector<std::vector<int64_t>> PairTrainingTask::validation_pairs() const {
  const int64_t all = task_.size(Split::val);
  const int64_t count = config_.eval.samples > 0 ? std::min(all, config_.eval.samples) : all;
  return models::text::validation_samples(count, config_.train.batch_size, 0, *mesh_);  // the first ones
}

bool PairTrainingTask::validate(LogRow& row, const Attempt& attempt) const {
  const std::vector<std::vector<int64_t>> pairs = validation_pairs();
  std::vector<models::Batch> batches;
  for (const std::vector<int64_t>& indices : pairs)
    batches.push_back(indices.empty() ? models::Batch() : pair_batch(task_, Split::val, indices));
  const double loss = models::evaluate(*model_, batches, *mesh_, StopSignals::requested);
  if (mesh_->world.any(StopSignals::requested())) return false;
  row["val_loss"] = loss;
  attempt("task accuracy", [&] {
    models::ExactMatch match;
    std::string failure;  // on any rank: then all have none
    try {
      match = exact_match(*model_, task_, Split::val, pairs, StopSignals::requested);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::numerical) throw;
      failure = e.what();
    }
    check(!mesh_->world.any(!failure.empty()), ErrorKind::numerical,
          [&] { return failure.empty() ? std::string("another process found logits with NaN or Inf") : failure; });
    match.pairs = mesh_->data.sum(match.pairs), match.exact = mesh_->data.sum(match.exact);
    row["task_acc"] = match.share();
  });
  return !mesh_->world.any(StopSignals::requested());
}

std::optional<std::string> PairTrainingTask::sample() const {
  std::string text;
  std::vector<int64_t> some = {0, 1, 2, 3, 4, 5, 6, 7};
  const models::Batch batch = pair_batch(task_, Split::val, some);
  const auto found = decode_greedily(*model_, batch.at("source_ids"), task_.target_length());
  for (size_t i = 0; i < some.size(); ++i) {
    const models::Pair pair = task_.pair(Split::val, some[i]);
    const std::string decoded = models::decode_symbols(found[i]);
    text += pair.source + " -> " + decoded + (decoded == pair.target ? "" : " (" + pair.target + ")") + "\n";
  }
  return text;
}

void PairTrainingTask::count(LogRow& row, int64_t samples, double rate) const {
  row["tokens"] = static_cast<double>(samples * sample_tokens());
  row["tok_per_s"] = rate * static_cast<double>(sample_tokens());
}

std::string PairTrainingTask::size_text() const {
  return str(samples(), " train pairs of the task ", task_.name(), ", sources of ", task_.source_length(),
             " and targets of ", task_.target_length(), " symbols");
}

}  // namespace braid::apps
