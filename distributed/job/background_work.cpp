#include "braid/distributed/job/background_work.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "braid/distributed/comm/work_state.h"
#include "braid/distributed/job/run_on_all_ranks.h"

namespace braid::dist {

struct BackgroundWork::State {
  enum class At { busy, transfer, end };
  std::mutex mutex;
  std::condition_variable changed;
  At at = At::busy;
  std::vector<Buffer> send, receive;  // of the transfer that it waits for
  bool given_up = false;
  std::exception_ptr error;
  bool of_all_ranks = false;  // the error

  void set(At now) {
    const std::lock_guard lock(mutex);
    at = now;
    changed.notify_all();
  }
};

// The transport of the work's thread, whose transfers proceed() makes.
class BackgroundWork::Relay final : public Transport {
 public:
  Relay(const Communicator& comm, std::shared_ptr<State> state)
      : rank_(comm.rank()), state_(std::move(state)), world_(static_cast<size_t>(comm.size())) {
    for (int r = 0; r < comm.size(); ++r) world_[static_cast<size_t>(r)] = comm.world_rank(r);
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.size()); }
  int world_rank(int rank) const override { return world_.at(static_cast<size_t>(rank)); }
  std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) override {
    {
      const std::lock_guard lock(state_->mutex);
      check(state_->at == State::At::busy, "background_work", [] { return "one transfer at a time"; });
      state_->send = send, state_->receive = receive;
    }
    state_->set(State::At::transfer);
    return std::make_unique<Transfer>(state_);
  }
  std::shared_ptr<Transport> split(const std::vector<int>&, int) override {
    fail(ErrorKind::misuse, "background_work: its communicator is not split");
  }
  int next_group() const override { return 0; }
  std::vector<int> unresponsive_ranks(double) override { return {}; }
  void answer_heartbeat() override {}

 private:
  struct Transfer final : TransferHandle {
    explicit Transfer(std::shared_ptr<State> of) : state(std::move(of)) {}
    bool done() override {
      const std::lock_guard lock(state->mutex);
      check(!state->given_up, ErrorKind::process, [] { return "the work in the background was given up"; });
      return state->at == State::At::busy;
    }
    void yield() override {
      std::unique_lock lock(state->mutex);
      state->changed.wait_for(lock, std::chrono::milliseconds(100),
                              [&] { return state->given_up || state->at == State::At::busy; });
    }
    std::vector<int> pending_peers() const override { return {}; }
    const std::shared_ptr<State> state;
  };

  const int rank_;
  const std::shared_ptr<State> state_;
  std::vector<int> world_;
};

void BackgroundWork::start(const Communicator& comm, std::function<void(const Communicator&)> work) {
  check(!active(), "background_work", [] { return "the work before this one has not ended"; });
  auto state = std::make_shared<State>();
  Communicator own;
  if (comm.size() > 1) own = Work::State::with_transport(comm, std::make_shared<Relay>(comm, state));
  thread_ = std::thread([state, own, work = std::move(work)] {
    try {
      work(own);
    } catch (const CollectiveError&) {
      state->error = std::current_exception();
      state->of_all_ranks = true;
    } catch (...) {
      state->error = std::current_exception();
    }
    state->set(State::At::end);
  });
  comm_ = comm;
  state_ = std::move(state);
}

BackgroundWork::~BackgroundWork() {
  if (!active()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->given_up = true;
    state_->changed.notify_all();
  }
  thread_.join();
}

bool BackgroundWork::proceed(bool wait) {
  using At = State::At;
  constexpr std::chrono::milliseconds kNext{1};  // for what follows at once, such as a text after its length
  for (bool follows = false;; follows = true) {
    State& s = *state_;
    std::unique_lock lock(s.mutex);
    const auto ready = [&] { return s.at != At::busy; };
    wait ? s.changed.wait(lock, ready) : static_cast<void>(follows && s.changed.wait_for(lock, kNext, ready));
    const At at = s.at;
    lock.unlock();
    const bool alone = at == At::end && s.error && !s.of_all_ranks;
    if (!alone && comm_.any(at == At::busy)) return false;
    if (at == At::end) {
      thread_.join();
      const std::shared_ptr<State> ended = std::move(state_);
      if (ended->error) std::rethrow_exception(ended->error);
      return true;
    }
    Work::State::exchange(comm_, s.send, s.receive);
    s.set(At::busy);
  }
}

void BackgroundWork::finish() {
  while (!proceed(true)) continue;
}

}  // namespace braid::dist
