// Generation as a service: many requests at once on one model. README.md beside it describes a pass.
#pragma once
#include <chrono>
#include <memory>
#include <optional>

#include "braid/models/inference/request.h"
#include "braid/models/language_model.h"

namespace braid::models {

struct EngineOptions {
  int64_t sequences = 16;  // maximum number of requests computed at a time
  int64_t positions = 0;   // of the cache, all requests together; 0: sequences x the model's longest sequence
  // Maximum number of tokens in one pass: one of each request that is decoding, the rest for prompts. Raised to
  // `sequences` if below, so that prompts advance.
  int64_t rows = 256;
  int64_t queue = 0;  // maximum number of waiting requests; 0: no limit
  bool share_prefixes = true;
};

struct EngineLoad {  // for metrics; all but waiting, running, kept and blocks are sums since the start
  int64_t waiting = 0, running = 0, finished = 0, cancelled = 0, failed = 0;
  int64_t prompt_tokens = 0, shared_tokens = 0;  // of admitted requests; shared: of these, not computed
  int64_t new_tokens = 0, passes = 0;
  int64_t steps = 0;          // draws after the first one of their request
  int64_t interruptions = 0;  // of requests that gave their blocks to older ones and were computed again
  int64_t kept = 0;           // sequences of ended requests, kept for their prefixes until their blocks are needed
  int64_t blocks = 0, free_blocks = 0;
  // Wall time of the passes, that of each pass split by its rows of prompts and of decoding requests.
  double prompt_seconds = 0, step_seconds = 0;
};

// All members but step() and run() may be called from any thread; these by one thread at a time. Over several ranks
// each rank has an engine and makes the same calls in the same order between the same passes; all ranks decide alike,
// since no decision depends on time. Requests that have not ended when the engine is destroyed get no update.
class GenerationEngine {
 public:
  // The model must outlive it. Error(setting) for options out of range. Made while a StrictBits lives in this thread,
  // it computes in strict bits, in whatever thread: the log-probability of a token then has the bits of training's
  // forward pass. Error(setting) where the model has no invariant() pool, or is not of f32 or 16 bits.
  explicit GenerationEngine(const LanguageModel& model, const EngineOptions& options = {});
  // The same on a pool of the caller; options.positions, where it is given, bounds each text.
  GenerationEngine(const LanguageModel& model, std::unique_ptr<SequencePool> pool, const EngineOptions& options);
  ~GenerationEngine();

  // Errors of check_options() and check_prompt(); Error(setting) where the prompt can never fit the cache, or
  // max_tokens or top are out of range. A text ends as context_full when it reaches the model's longest sequence or
  // fills the entire cache. nullopt: the queue is full. Ids are 1, 2, ... in the order of the calls.
  std::optional<uint64_t> submit(GenerationRequest request);
  // Ends the request before the next pass; it gets a last update (StopReason::cancelled). Unknown ids: nothing.
  void cancel(uint64_t id);
  // Frees the blocks of kept prefixes before the next pass.
  void drop_prefixes();
  // One pass over the weights: admits waiting requests, computes, samples, calls on_update. false: there was nothing to
  // do. NaN logits of one request fail that request alone; an exception of the pass itself fails those in the pass.
  bool step();
  void run();  // step() until there is nothing to do
  // Waits until something is submitted or cancelled; returns at once if requests wait or run. false: timed out.
  bool wait_for_work(std::chrono::milliseconds timeout);
  EngineLoad load() const;
  bool invariant() const;  // SequencePool::invariant()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::models
