#include "braid/distributed/comm/thread_transport.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <tuple>

namespace braid::dist {

namespace {

// Messages that were sent and not yet received.
struct Hub {
  using Key = std::tuple<int, int, int, int64_t>;  // group, from, to, number of the message between the two
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<Key, std::vector<char>> messages;
  std::vector<int> next_groups;  // per rank
  int failed = -1;               // the first rank that ended with an error

  void fail_rank(int rank) {
    std::lock_guard lock(mutex);
    if (failed < 0) failed = rank;
    arrived.notify_all();
  }
};

class ThreadTransfer final : public TransferHandle {
 public:
  ThreadTransfer(std::shared_ptr<Hub> hub, std::vector<int> from, std::vector<Hub::Key> keys, std::vector<Buffer> into)
      : hub_(std::move(hub)), from_(std::move(from)), keys_(std::move(keys)), into_(std::move(into)) {}

  bool done() override {
    std::lock_guard lock(hub_->mutex);
    for (size_t i = keys_.size(); i-- > 0;) {
      auto message = hub_->messages.find(keys_[i]);
      if (message == hub_->messages.end()) continue;
      check(static_cast<int64_t>(message->second.size()) == into_[i].bytes, "communicator", [&] {
        return str("rank ", from_[i], " sent ", message->second.size(), " bytes, expected ", into_[i].bytes,
                   ": the ranks call different collectives");
      });
      std::memcpy(into_[i].data, message->second.data(), message->second.size());
      hub_->messages.erase(message);
      auto at = static_cast<std::ptrdiff_t>(i);
      from_.erase(from_.begin() + at);
      keys_.erase(keys_.begin() + at);
      into_.erase(into_.begin() + at);
    }
    check(keys_.empty() || hub_->failed < 0, ErrorKind::process,
          [&] { return str("rank ", hub_->failed, " ended with an error"); });
    return keys_.empty();
  }
  void yield() override {
    std::unique_lock lock(hub_->mutex);
    for (const Hub::Key& key : keys_) {
      if (hub_->messages.contains(key)) return;
    }
    if (hub_->failed < 0) hub_->arrived.wait_for(lock, std::chrono::milliseconds(20));
  }
  std::vector<int> pending_peers() const override { return from_; }

 private:
  std::shared_ptr<Hub> hub_;
  std::vector<int> from_;
  std::vector<Hub::Key> keys_;
  std::vector<Buffer> into_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Hub> hub, int group, int rank, std::vector<int> world)
      : hub_(std::move(hub)), group_(group), rank_(rank), world_(std::move(world)) {
    sent_.resize(world_.size());
    received_.resize(world_.size());
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.size()); }
  int world_rank(int rank) const override { return world_.at(static_cast<size_t>(rank)); }

  std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) override {
    std::vector<int> from;
    std::vector<Hub::Key> keys;
    std::vector<Buffer> into;
    std::lock_guard lock(hub_->mutex);
    for (int r = 0; r < size(); ++r) {
      auto i = static_cast<size_t>(r);
      if (r == rank_) continue;
      if (send[i].bytes > 0) {
        hub_->messages[{group_, world_rank(rank_), world_rank(r), sent_[i]++}].assign(send[i].data,
                                                                                      send[i].data + send[i].bytes);
      }
      if (receive[i].bytes > 0) {
        from.push_back(r);
        keys.emplace_back(group_, world_rank(r), world_rank(rank_), received_[i]++);
        into.push_back(receive[i]);
      }
    }
    hub_->arrived.notify_all();
    return std::make_unique<ThreadTransfer>(hub_, std::move(from), std::move(keys), std::move(into));
  }

  std::shared_ptr<Transport> split(const std::vector<int>& members, int group) override {
    std::vector<int> world;
    int rank = -1;
    for (int m : members) {
      if (m == rank_) rank = static_cast<int>(world.size());
      world.push_back(world_rank(m));
    }
    std::lock_guard lock(hub_->mutex);
    own_next_group() = group + 1;
    return std::make_shared<ThreadTransport>(hub_, group, rank, std::move(world));
  }
  int next_group() const override {
    std::lock_guard lock(hub_->mutex);
    return own_next_group();
  }

  std::vector<int> unresponsive_ranks(double) override { return {}; }  // threads cannot stop alone
  void answer_heartbeat() override {}

 private:
  int& own_next_group() const { return hub_->next_groups[static_cast<size_t>(world_rank(rank_))]; }

  std::shared_ptr<Hub> hub_;
  int group_;
  int rank_;
  std::vector<int> world_;
  std::vector<int64_t> sent_, received_;  // messages so far, to and from each rank
};

}  // namespace

void run_thread_ranks(int ranks, const std::function<void(const Communicator&)>& body) {
  run_transport_ranks(ranks, [&](std::shared_ptr<Transport> transport) { body(Communicator(std::move(transport))); });
}

void run_transport_ranks(int ranks, const std::function<void(std::shared_ptr<Transport>)>& body) {
  auto hub = std::make_shared<Hub>();
  std::vector<int> world(static_cast<size_t>(ranks));
  std::iota(world.begin(), world.end(), 0);
  hub->next_groups.assign(world.size(), 1);
  std::vector<std::exception_ptr> errors(world.size());
  std::vector<std::thread> threads;
  threads.reserve(world.size());
  for (int r = 0; r < ranks; ++r) {
    const auto run = [&, r] {
      try {
        body(std::make_shared<ThreadTransport>(hub, 0, r, world));
      } catch (...) {
        errors[static_cast<size_t>(r)] = std::current_exception();
        hub->fail_rank(r);
      }
    };
    try {
      threads.emplace_back(run);
    } catch (const std::system_error& e) {  // the ranks that run would wait for this one
      errors[static_cast<size_t>(r)] = std::make_exception_ptr(
          Error(ErrorKind::process, str("cannot start a thread for rank ", r, " of ", ranks, ": ", e.code().message(),
                                        "; run fewer ranks, or raise the limit on processes (ulimit -u)")));
      hub->fail_rank(r);
      break;
    }
  }
  for (std::thread& t : threads) t.join();
  if (hub->failed >= 0) std::rethrow_exception(errors[static_cast<size_t>(hub->failed)]);
}

}  // namespace braid::dist
