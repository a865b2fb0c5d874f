// Measurements of the model between steps: loss on the validation split, accuracy on the in-context tasks, a sample.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/train/train_config.h"
#include "braid/models/dcformer/model.h"
#include "braid/models/text/dataset.h"
#include "braid/models/text/tasks/tasks.h"
#include "braid/models/training/trainer.h"

namespace braid::apps {

class Evaluation {
 public:
  Evaluation(const TrainConfig& config, const models::Trainer& trainer, const models::text::Dataset& validation);

  // All are collective. Mean loss in nats per token over eval.batches batches, the same at every call.
  double validation_loss() const;
  // Share of eval.tasks held-out tasks that the model solves, 0..1; not_measured without tasks. On rank 0.
  double task_accuracy() const;
  // sample.tokens tokens that continue sample.prompt, with it. On rank 0, "" elsewhere.
  std::string sample() const;

 private:
  void with_unsharded_model(const std::function<void(const models::Dcformer&)>& work) const;

  const TrainConfig& config_;
  const models::Trainer& trainer_;
  const models::text::Tokenizer& tokenizer_;
  std::vector<models::Batch> batches_;
  std::vector<models::text::TaskSample> tasks_;
};

}  // namespace braid::apps
