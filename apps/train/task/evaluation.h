// Measurements of the model between steps: loss on the validation split, accuracy on the in-context tasks, a sample.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/tasks/tasks.h"
#include "braid/models/data/text/dataset.h"
#include "braid/models/language_model.h"

namespace braid::apps {

class Evaluation {
 public:
  // The arguments must outlive this object. `validation`: of each source, where it has one; empty for a run without
  // validation, which must not call validation_losses().
  Evaluation(const TrainConfig& config, const models::LanguageModel& model, const dist::ProcessMesh& mesh,
             const models::text::Tokenizer& tokenizer,
             const std::vector<std::optional<models::text::Dataset>>& validation);

  // All are collective. None, on all ranks: a stop signal came before the end. task_accuracy() and sample() throw
  // Error(numerical) on all ranks when logits are NaN or Inf.
  // Mean loss of each source in nats per token over eval.samples samples (0: the split), the same at every call; NaN of
  // one without validation.
  std::optional<std::vector<double>> validation_losses() const;
  // Share of eval.tasks held-out tasks that the model solves, 0..1; on data rank 0, not_measured elsewhere and where
  // gradable_answers() is 0.
  std::optional<double> task_accuracy() const;
  int64_t gradable_answers() const;  // of these tasks, in sequences as long as the model's
  // sample.prompt and sample.tokens tokens that continue it; on data rank 0, "" elsewhere.
  std::optional<std::string> sample() const;

 private:
  using Stop = std::function<bool()>;  // was a stop requested? the same on all ranks of a replica
  bool on_one_replica(const std::function<void(const Stop&)>& work) const;

  const TrainConfig& config_;
  const models::LanguageModel& model_;
  const dist::ProcessMesh& mesh_;
  const models::text::Tokenizer& tokenizer_;
  std::vector<std::vector<models::Batch>> batches_;  // of each source
  std::vector<models::text::TaskSample> tasks_;
};

}  // namespace braid::apps
