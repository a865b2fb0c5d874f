#include "apps/train/task/evaluation.h"

#include <chrono>
#include <cmath>
#include <exception>

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

// The ranks of data rank 0 hold the model together: work may call collectives of their tensor and context groups; the
// others wait. While it lasts all ranks meet several times within parallel.timeout, so that one that hangs is noticed.
// When it fails, all ranks end with its error. false: it was stopped.
bool Evaluation::on_one_replica(const std::function<void(const Stop&)>& work) const {
  using Clock = std::chrono::steady_clock;
  const bool works = mesh_.data.rank() == 0;
  const std::chrono::duration<double> apart(config_.parallel.timeout / 4);
  Clock::time_point met = Clock::now();
  bool stopped = false;
  const Stop stop = [&] {
    constexpr int64_t meet = int64_t{1} << 32;  // above any number of ranks that were asked to stop
    const bool due = apart.count() > 0 && Clock::now() - met > apart;
    const int64_t mine = (due ? meet : 0) + (StopSignals::requested() ? 1 : 0),
                  all = mesh_.context.sum(mesh_.tensor.sum(mine));
    if (all >= meet) {
      mesh_.world.any(false);
      met = Clock::now();
    }
    stopped = stopped || all % meet > 0;
    return stopped;
  };
  std::exception_ptr failure;
  try {
    if (works) work(stop);
  } catch (const Error& e) {  // of all that work, but for these: the others may wait in the middle of the work
    if (e.kind() == ErrorKind::process || dynamic_cast<const OutOfMemory*>(&e)) throw;
    failure = std::current_exception();
  }
  while (!mesh_.world.any(works)) {
  }
  dist::run_on_all_ranks(mesh_.world, [&] {
    if (failure) std::rethrow_exception(failure);
  });
  return !mesh_.world.any(stopped);
}

}  // namespace braid::apps
