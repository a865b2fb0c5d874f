#include "braid/models/inference/batch.h"

#include <algorithm>
#include <numeric>

namespace braid::models {
int64_t positions_for(std::span<const std::vector<int32_t>> prompts, int64_t rows, int64_t max_tokens,
                      int64_t longest) {
  constexpr int64_t kRoundedUp = 16;  // the last block of a text is not full
  std::vector<int64_t> needs;
  for (const std::vector<int32_t>& prompt : prompts) {
    const int64_t length = std::ssize(prompt);
    needs.push_back(length + std::min(max_tokens, longest - length) + kRoundedUp);
  }
  std::ranges::sort(needs, std::greater<>());
  needs.resize(std::min(needs.size(), static_cast<size_t>(rows)));
  return std::accumulate(needs.begin(), needs.end(), int64_t{0});
}

GeneratedBatch generate_batch(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts, int64_t rows,
                              int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends,
                              const std::function<bool(size_t, int32_t)>& accept) {
  check_options(options);
  check(rows >= 1, "generate_batch", "needs at least one row");
  for (const std::vector<int32_t>& prompt : prompts) check_prompt(model, prompt);
  GeneratedBatch out;
  out.texts.resize(prompts.size());
  if (max_tokens < 1 || prompts.empty()) return out;
  const int64_t positions = positions_for(prompts, rows, max_tokens, model.max_sequence_length());
  GenerationEngine engine(model, {.sequences = std::min(rows, std::ssize(prompts)), .positions = positions});
  std::exception_ptr error;  // the first one
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerationRequest request{.prompt = prompts[i], .max_tokens = max_tokens, .sampling = options, .ends = ends};
    request.sampling.seed += i;
    request.on_update = [&, i](const Update& update) {
      Generated& text = out.texts[i];
      text.tokens.insert(text.tokens.end(), update.tokens.begin(), update.tokens.end());
      bool accepted = true;
      for (const int32_t token : update.tokens) accepted = accepted && (!accept || accept(i, token));
      if (update.finished) text.reason = accepted ? update.reason : StopReason::caller;
      if (update.error && !error) error = update.error;
      return accepted;
    };
    engine.submit(std::move(request));
  }
  while (!error && engine.step()) continue;
  if (error) std::rethrow_exception(error);
  const EngineLoad load = engine.load();
  out.prompt_tokens = load.prompt_tokens - load.shared_tokens;
  out.steps = load.steps;
  out.prompt_seconds = load.prompt_seconds;
  out.step_seconds = load.step_seconds;
  return out;
}

}  // namespace braid::models
