#include "braid/models/inference/engine.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "braid/models/inference/scheduler.h"
#include "braid/nn/inference/quantize.h"
#include "braid/tensor/strict.h"

namespace braid::models {
namespace {

void check_engine(const EngineOptions& o) {
  const auto range = [](bool ok, const char* name, int64_t value, const char* allowed) {
    check(ok, ErrorKind::setting,
          [&] { return str("engine option ", name, " is out of range: expected ", allowed, ", found ", value); });
  };
  range(o.sequences >= 1, "sequences", o.sequences, "1 or more");
  range(o.rows >= 1, "rows", o.rows, "1 or more");
  range(o.positions >= 0, "positions", o.positions, "0 (the longest sequence for each) or more");
  range(o.queue >= 0, "queue", o.queue, "0 (no limit) or more");
}

void check_strict(const LanguageModel& model, bool invariant) {
  if (!strict_bits()) return;
  const auto required = [](bool ok, const char* expected, const std::string& found) {
    check(ok, ErrorKind::setting, [&] { return str("strict bits: expected ", expected, ", found ", found); });
  };
  required(invariant,
           "a model whose rows do not depend on their company: on the CPU, causal, without capped scores "
           "and composed variants of attention",
           "another one; leave strict out");
  const int bits = nn::quantized_bits(model);
  required(model.dtype() != DType::f64 && bits == 0, "weights of f32 or bf16", bits > 0 ? str("int", bits) : "f64");
}

std::unique_ptr<SequencePool> make_pool(const LanguageModel& model, const EngineOptions& options) {
  check_engine(options);
  return model.make_sequence_pool(options.positions > 0 ? options.positions
                                                        : options.sequences * model.max_sequence_length());
}

}  // namespace

// Messages pass through the mutex; the scheduler belongs to the thread that calls step().
struct GenerationEngine::State {
  State(const LanguageModel& model, std::unique_ptr<SequencePool> pool, const EngineOptions& options)
      : scheduler(model, std::move(pool), options), queue(options.queue), load(scheduler.load()) {
    check_strict(model, scheduler.invariant());
  }

  struct Submitted {
    uint64_t id;
    GenerationRequest request;
    std::chrono::steady_clock::time_point time;
  };

  void publish() {
    const EngineLoad now = scheduler.load();
    const std::lock_guard<std::mutex> lock(mutex);
    load = now;
    load.waiting += std::ssize(submitted);
  }
  bool has_messages() const { return !submitted.empty() || !cancelled.empty() || drop; }

  Scheduler scheduler;
  const int64_t queue;
  const bool strict = strict_bits();
  mutable std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex:
  std::vector<Submitted> submitted;
  std::vector<uint64_t> cancelled;
  bool drop = false;
  uint64_t last_id = 0;
  EngineLoad load;
};

GenerationEngine::GenerationEngine(const LanguageModel& model, const EngineOptions& options)
    : GenerationEngine(model, make_pool(model, options), options) {}

GenerationEngine::GenerationEngine(const LanguageModel& model, std::unique_ptr<SequencePool> pool,
                                   const EngineOptions& options) {
  check_engine(options);
  state_ = std::make_unique<State>(model, std::move(pool), options);
}

GenerationEngine::~GenerationEngine() = default;

std::optional<uint64_t> GenerationEngine::submit(GenerationRequest request) {
  state_->scheduler.check_request(request);
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->queue > 0 && state_->load.waiting >= state_->queue) return std::nullopt;
  ++state_->load.waiting;
  const uint64_t id = ++state_->last_id;
  state_->submitted.push_back({id, std::move(request), now});
  state_->changed.notify_all();
  return id;
}

void GenerationEngine::cancel(uint64_t id) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (id == 0 || id > state_->last_id) return;
  state_->cancelled.push_back(id);
  state_->changed.notify_all();
}

void GenerationEngine::drop_prefixes() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->drop = true;
  state_->changed.notify_all();
}

bool GenerationEngine::step() {
  State& s = *state_;
  const StrictBits strict(s.strict);
  std::vector<State::Submitted> submitted;
  std::vector<uint64_t> cancelled;
  bool drop = false;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    submitted.swap(s.submitted);
    cancelled.swap(s.cancelled);
    drop = std::exchange(s.drop, false);
  }
  for (State::Submitted& one : submitted) s.scheduler.add(one.id, std::move(one.request), one.time);
  for (const uint64_t id : cancelled) s.scheduler.cancel(id);
  if (drop) s.scheduler.drop_prefixes();
  const bool work = s.scheduler.prepare();
  s.publish();
  if (work) {
    s.scheduler.compute();
    s.publish();
  }
  return work || !submitted.empty() || !cancelled.empty();
}

void GenerationEngine::run() {
  while (step()) continue;
}

bool GenerationEngine::wait_for_work(std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  return state_->changed.wait_for(
      lock, timeout, [&] { return state_->has_messages() || state_->load.waiting + state_->load.running > 0; });
}

EngineLoad GenerationEngine::load() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->load;
}

bool GenerationEngine::invariant() const { return state_->scheduler.invariant(); }

}  // namespace braid::models
