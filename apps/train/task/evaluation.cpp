#include "apps/train/task/evaluation.h"

#include <cmath>

#include "apps/cli/signals.h"
#include "apps/train/log/log.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/data/text/batches.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/inference/generate.h"
#include "braid/models/training/trainer.h"

namespace braid::apps {

Evaluation::Evaluation(const TrainConfig& config, const models::LanguageModel& model, const dist::ProcessMesh& mesh,
                       const models::text::Tokenizer& tokenizer,
                       const std::vector<std::optional<models::text::Dataset>>& validation)
    : config_(config), model_(model), mesh_(mesh), tokenizer_(tokenizer) {
  for (const auto& data : validation)
    batches_.push_back(data
                           ? models::text::validation_batches(*data, config.train.batch_size, config.eval.samples, mesh)
                           : std::vector<models::Batch>());
  const models::text::TaskSet set = models::text::parse_task_set(config.eval.task_set);
  for (int64_t i = 0; i < config.eval.tasks; ++i)
    tasks_.push_back(models::text::make_task_sample(models::text::Vocabulary::held_out, 0, i, set));
}

std::optional<std::vector<double>> Evaluation::validation_losses() const {
  std::vector<double> losses;
  for (const std::vector<models::Batch>& batches : batches_) {
    losses.push_back(batches.empty() ? NAN : models::evaluate(model_, batches, mesh_, StopSignals::requested));
    if (std::isnan(losses.back()) && mesh_.world.any(StopSignals::requested())) return std::nullopt;
  }
  return losses;
}

int64_t Evaluation::gradable_answers() const {
  return models::count_gradable_answers(tokenizer_, tasks_, model_.max_sequence_length());
}

std::optional<double> Evaluation::task_accuracy() const {
  double accuracy = not_measured;
  const bool complete = on_one_replica(
      [&](const Stop& stop) { accuracy = models::grade_tasks(model_, tokenizer_, tasks_, stop).accuracy(); });
  return complete ? std::optional(accuracy) : std::nullopt;
}

std::optional<std::string> Evaluation::sample() const {
  std::string text;
  const bool complete = on_one_replica([&](const Stop& stop) {
    std::vector<int32_t> prompt = tokenizer_.encode(config_.sample.prompt);
    // A document begins after the end of another.
    if (prompt.empty())
      prompt.push_back(models::text::document_end(tokenizer_, "an empty sample.prompt begins behind"));
    const models::SamplingOptions options{.temperature = config_.sample.temperature,
                                          .seed = static_cast<uint64_t>(config_.run.seed),
                                          .vocabulary = tokenizer_.vocab_size()};
    const models::Generated g = models::generate(model_, prompt, config_.sample.tokens, options, tokenizer_.end_ids(),
                                                 [&](int32_t) { return !stop(); });
    models::text::StreamDecoder decoder(tokenizer_);
    decoder.begin(prompt);
    text = config_.sample.prompt;
    for (const int32_t id : g.tokens) text += decoder.push(id);
    text += decoder.finish();
  });
  return complete ? std::optional(text) : std::nullopt;
}

namespace {
// While it lives, ranks wait for each other as long as it takes.
struct Patience {
  const dist::Communicator& world;
  double usual;  // seconds
  Patience(const dist::Communicator& all, double timeout) : world(all), usual(timeout) { world.set_timeout(0); }
  Patience(const Patience&) = delete;
  ~Patience() { world.set_timeout(usual); }
};
}  // namespace

// The ranks of data rank 0 hold the model together: work may call collectives of their tensor and context groups; the
// others wait. When it fails, all ranks end with its error. false: it was stopped.
bool Evaluation::on_one_replica(const std::function<void(const Stop&)>& work) const {
  bool stopped = false;
  const Stop stop = [&] {
    stopped = stopped || mesh_.context.any(mesh_.tensor.any(StopSignals::requested()));
    return stopped;
  };
  const Patience patience(mesh_.world, config_.parallel.timeout);
  dist::run_on_all_ranks(mesh_.world, [&] {
    if (mesh_.data.rank() == 0) work(stop);
  });
  return !mesh_.world.any(stopped);
}

}  // namespace braid::apps
