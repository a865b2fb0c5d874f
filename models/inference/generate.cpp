#include "braid/models/inference/generate.h"

#include <algorithm>

namespace braid::models {

Generated generate(const LanguageModel& model, std::span<const int32_t> prompt, int64_t max_tokens,
                   const SamplingOptions& options, const std::vector<int32_t>& ends,
                   const std::function<bool(int32_t)>& accept) {
  check_options(options);
  check_prompt(model, prompt);
  const int64_t free_positions = model.max_sequence_length() - std::ssize(prompt);
  Conversation text(model, std::ssize(prompt) + std::clamp<int64_t>(max_tokens, 0, free_positions));
  text.append(prompt);
  return text.generate(max_tokens, options, ends, accept);
}

// A prompt is read in one pass.
Conversation::Conversation(const LanguageModel& model, int64_t capacity)
    : model_(&model),
      capacity_(capacity),
      engine_(std::make_unique<GenerationEngine>(
          model, EngineOptions{.sequences = 1, .positions = capacity, .rows = capacity})) {}

void Conversation::append(std::span<const int32_t> tokens) {
  std::vector<int32_t> all = tokens_;
  all.insert(all.end(), tokens.begin(), tokens.end());
  check_prompt(*model_, all);
  tokens_ = std::move(all);
}

Generated Conversation::generate(int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends,
                                 const std::function<bool(int32_t)>& accept) {
  check_options(options);
  Generated out;
  if (max_tokens < 1) return out;
  if (remaining() < 0) {  // the last token has no place in the cache
    out.reason = StopReason::context_full;
    return out;
  }
  bool accepted = true;
  std::exception_ptr error;
  GenerationRequest request{.prompt = tokens_, .max_tokens = max_tokens, .sampling = options, .ends = ends};
  request.on_update = [&](const Update& update) {
    for (const int32_t token : update.tokens) {
      out.tokens.push_back(token);
      tokens_.push_back(token);
      accepted = accepted && (!accept || accept(token));
    }
    if (!update.finished) return accepted;
    out.reason = accepted ? update.reason : StopReason::caller;
    out.prompt_tokens = update.prompt_tokens - update.shared_tokens;
    out.steps = update.steps;
    out.prompt_seconds = update.prompt_seconds;
    out.step_seconds = update.step_seconds;
    error = update.error;
    return true;
  };
  engine_->submit(std::move(request));
  engine_->run();
  if (error) std::rethrow_exception(error);
  return out;
}

}  // namespace braid::models
