#include "apps/eval/pairs.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/eval/without_text.h"
#include "braid/models/data/local_samples.h"
#include "braid/models/families/seq2seq/greedy.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {

using models::text::Split;

namespace {

void check_fits(const models::Seq2Seq& model, const models::PairTask& task) {
  const models::Seq2SeqConfig& c = model.config();
  check(c.vocab_size == models::kPairVocabulary && c.max_source_length == task.source_length() &&
            c.max_target_length == task.target_length(),
        ErrorKind::input, [&] {
          return str(models::kPairsPrefix, task.name(), " does not fit the model: expected sources of ",
                     c.max_source_length, " and targets of ", c.max_target_length, " of ", c.vocab_size,
                     " symbols, found ", task.source_length(), ", ", task.target_length(), " and ",
                     models::kPairVocabulary);
        });
}

}  // namespace

bool names_pairs(const Arguments& arguments) { return names_task(arguments, models::kPairsPrefix); }

int eval_pairs(const Arguments& arguments) {
  check_only(arguments, models::kPairsPrefix, "pairs of sequences");
  std::vector<models::PairTask> tasks;
  for (const std::string& task : arguments.list("TASK")) tasks.push_back(*models::PairTask::of_path(task));
  const std::string json = arguments.get("json");
  if (!json.empty()) io::AtomicFile place(json);  // can it be written?
  const StopSignals listening;
  const models::LoadedModel loaded = load_model_of(arguments);
  const auto* model = dynamic_cast<const models::Seq2Seq*>(loaded.model.get());
  check(model != nullptr, ErrorKind::input,
        [&] { return "a model of type " + loaded.model->spec()->model_type() + " does not read pairs of sequences"; });
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const models::PairTask& task : tasks) {
    check_fits(*model, task);
    const int64_t limit = arguments.get_int("limit"), size = task.size(Split::val), batch = arguments.get_int("batch");
    const int64_t count = limit > 0 ? std::min(limit, size) : size;
    const std::vector<std::vector<int64_t>> places = models::text::validation_samples(count, batch, 0, {});
    std::vector<models::Batch> batches;
    for (const std::vector<int64_t>& pairs : places) batches.push_back(pair_batch(task, Split::val, pairs));
    const double loss = models::evaluate(*model, batches, {}, StopSignals::requested);
    const models::ExactMatch match = exact_match(*model, task, Split::val, places, StopSignals::requested);
    if (StopSignals::requested()) {
      std::fprintf(stderr, "stopped by %s; nothing was saved\n", StopSignals::name());
      return exit_stopped;
    }
    std::printf("%s%s: %lld pairs  exact match %.2f %%  loss %.4f\n", models::kPairsPrefix, task.name().c_str(),
                static_cast<long long>(match.pairs), 100 * match.share(), loss);
    results.push_back({{"task", models::kPairsPrefix + task.name()},
                       {"pairs", match.pairs},
                       {"exact", match.exact},
                       {"exact_match", match.share()},
                       {"loss", loss}});
  }
  if (!json.empty()) io::write_file(json, nlohmann::ordered_json{{"results", results}}.dump(1) + "\n");
  return 0;
}

}  // namespace braid::apps
