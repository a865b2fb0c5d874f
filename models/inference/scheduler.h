// Which requests a pass computes, and the memory that they get. For one thread; the engine is the door for many.
#pragma once
#include <deque>

#include "braid/models/inference/engine.h"
#include "braid/models/inference/pass.h"
#include "braid/models/inference/prefixes.h"

namespace braid::models {

class Scheduler {
 public:
  Scheduler(const LanguageModel& model, std::unique_ptr<SequencePool> pool, const EngineOptions& options);

  // The errors of GenerationEngine::submit(). May be called from any thread.
  void check_request(const GenerationRequest& request) const;
  void add(uint64_t id, GenerationRequest request, std::chrono::steady_clock::time_point submitted);
  void cancel(uint64_t id);
  void drop_prefixes();
  // Chooses what the next pass computes: room for the requests that decode, then new requests. false: no request is
  // there.
  bool prepare();
  // Computes it and calls on_update.
  void compute();
  EngineLoad load() const;
  bool invariant() const { return pool_->invariant(); }

 private:
  using Request = std::unique_ptr<RequestState>;

  // Tokens of its text that are not in the cache; 1 where it is decoding.
  int64_t pending(const RequestState& s) const { return std::ssize(s.text) - pool_->length(s.sequence); }
  int64_t blocks_of_growth(const RequestState& s) const;
  int64_t blocks_to_spare() const;  // for the growth of all that run
  std::vector<Prefixes::Live> live(bool computed) const;
  bool waits_for_a_prefix(const RequestState& s) const;
  void make_room();
  void interrupt_youngest();
  void admit();
  bool place(RequestState& s);
  void plan();
  void deliver(RequestState& s);
  std::optional<StopReason> add_draw(RequestState& s, Update& update);
  void finish(RequestState& s, Update update, StopReason reason);
  void fail(RequestState& s, std::exception_ptr error);
  Request remove(const RequestState& s);

  const LanguageModel& model_;
  std::unique_ptr<SequencePool> pool_;
  EngineOptions options_;
  int64_t longest_;  // positions of a text
  Prefixes prefixes_;
  // In the order of arrival; those that run arrived before those that wait.
  std::deque<Request> running_, waiting_;
  std::vector<Piece> pieces_;  // of the next pass
  EngineLoad sums_;
};

}  // namespace braid::models
