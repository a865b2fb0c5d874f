#include "apps/train/evaluation.h"

#include "apps/train/from_config.h"
#include "apps/train/job.h"
#include "apps/train/log.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/generation/generate.h"
#include "braid/models/text/batches.h"

namespace braid::apps {

Evaluation::Evaluation(const TrainConfig& config, const models::Trainer& trainer,
                       const models::text::Dataset& validation)
    : config_(config),
      trainer_(trainer),
      tokenizer_(validation.tokenizer()),
      batches_(
          models::text::validation_batches(validation, config.train.batch_size, config.eval.batches, trainer.mesh())) {
  for (int64_t i = 0; i < config.eval.tasks; ++i)
    tasks_.push_back(models::text::make_task_sample(models::text::Words::held_out, 0, i));
}

double Evaluation::validation_loss() const { return models::evaluate(trainer_.model(), batches_, trainer_.mesh()); }

double Evaluation::task_accuracy() const {
  double accuracy = not_measured;
  if (tasks_.empty()) return accuracy;
  with_unsharded_model(
      [&](const models::Dcformer& model) { accuracy = models::grade_tasks(model, tokenizer_, tasks_).accuracy(); });
  return accuracy;
}

std::string Evaluation::sample() const {
  std::vector<int32_t> prompt = tokenizer_.encode(config_.sample.prompt);
  if (prompt.empty()) prompt.push_back(tokenizer_.eos_id());  // a document begins after the end of another
  const models::SamplingOptions options{.temperature = config_.sample.temperature,
                                        .seed = static_cast<uint64_t>(config_.run.seed)};
  std::string text;
  with_unsharded_model([&](const models::Dcformer& model) {
    const models::Generated g = models::generate(model, prompt, config_.sample.tokens, options, tokenizer_.eos_id());
    text = config_.sample.prompt + tokenizer_.decode(g.tokens, true);
  });
  return text;
}

// On rank 0, with the shards of the tensor ranks gathered.
void Evaluation::with_unsharded_model(const std::function<void(const models::Dcformer&)>& work) const {
  const dist::Communicator& world = trainer_.mesh().world;
  const models::LanguageModel& model = trainer_.model();
  if (const auto* unsharded = dynamic_cast<const models::Dcformer*>(&model))
    return at_root(world, [&] { work(*unsharded); });
  const std::vector<nn::NamedTensor> weights = gather(trainer_.local_state().weights, world, model.device());
  at_root(world, [&] {
    models::Dcformer gathered = models::Dcformer::uninitialised(model.config());
    gathered.to(arithmetic(config_).compute);
    gathered.to(model.device());
    nn::load(gathered, weights, "the run");
    work(gathered);
  });
}

}  // namespace braid::apps
