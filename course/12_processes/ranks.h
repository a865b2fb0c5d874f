// Ranks as threads, over a transport that watches them: a send waits until the other rank receives, as MPI's may do for
// large messages. Where no rank can continue, the message says what each of them waits in.
#pragma once
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "braid/distributed/comm/communicator.h"
#include "course/checks.h"

namespace course {

using braid::dist::Communicator;

struct Room {
  struct Message {
    const char* data;
    int64_t bytes;
    bool taken;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> sent;  // by sender and receiver
  std::vector<std::string> state;                                            // of a rank that cannot continue; else ""
  std::string fault;                                                         // ends all ranks

  // Under the lock: the rank waits or has returned; where all do, that is a deadlock.
  void stop(size_t rank, const std::string& why) {
    state[rank] = why;
    std::string all;
    bool waits = false;
    for (size_t r = 0; r < state.size(); ++r) {
      if (state[r].empty()) return;
      all += words(r ? ", " : "", "rank ", r, " ", state[r]);
      waits = waits || state[r] != "has returned";
    }
    if (waits && fault.empty()) fault = "deadlock, no rank can continue: " + all;
    changed.notify_all();
  }
};

class Transfer final : public braid::dist::TransferHandle {
 public:
  Transfer(Room& room, int rank) : room_(room), rank_(rank) {}
  bool done() override {
    std::lock_guard lock(room_.mutex);
    std::string waits;
    for (auto& [from, buffer] : into) {
      auto& queue = room_.sent[{from, rank_}];
      if (room_.fault.empty() && buffer.data && !queue.empty()) {
        const Room::Message& message = *queue.front();
        if (message.bytes != buffer.bytes) {
          room_.fault = words("rank ", rank_, " expects ", buffer.bytes, " bytes from rank ", from, ", which sent ",
                              message.bytes, ": shapes or the order of the sends differ");
        } else {
          std::memcpy(buffer.data, message.data, static_cast<size_t>(message.bytes));
          buffer.data = nullptr;
          queue.front()->taken = true;
          queue.pop_front();
          room_.state[static_cast<size_t>(from)].clear();
        }
        room_.changed.notify_all();
      }
      if (buffer.data) waits += words(waits.empty() ? "waits in receive from " : ", ", from);
    }
    for (const auto& [to, message] : out)
      if (!message->taken) waits += words(waits.empty() ? "waits in send to " : " and send to ", to);
    if (room_.fault.empty() && !waits.empty()) room_.stop(static_cast<size_t>(rank_), waits);
    if (!room_.fault.empty()) throw std::runtime_error(room_.fault);
    return waits.empty();
  }
  void yield() override {
    std::unique_lock lock(room_.mutex);
    room_.changed.wait(lock, [&] { return !room_.fault.empty() || room_.state[static_cast<size_t>(rank_)].empty(); });
  }
  std::vector<int> pending_peers() const override { return {}; }

  std::vector<std::pair<int, braid::dist::Buffer>> into;
  std::vector<std::pair<int, std::shared_ptr<Room::Message>>> out;

 private:
  Room& room_;
  int rank_;
};

class WatchedTransport final : public braid::dist::Transport {
 public:
  WatchedTransport(Room& room, int rank) : room_(room), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(room_.state.size()); }
  int world_rank(int rank) const override { return rank; }
  std::unique_ptr<braid::dist::TransferHandle> start(const std::vector<braid::dist::Buffer>& send,
                                                     const std::vector<braid::dist::Buffer>& receive) override {
    auto transfer = std::make_unique<Transfer>(room_, rank_);
    std::lock_guard lock(room_.mutex);
    for (size_t r = 0; r < send.size(); ++r) {
      const int other = static_cast<int>(r);
      if (other == rank_) continue;
      if (receive[r].bytes > 0) transfer->into.emplace_back(other, receive[r]);
      if (send[r].bytes == 0) continue;
      transfer->out.emplace_back(other, new Room::Message{send[r].data, send[r].bytes, false});
      room_.sent[{rank_, other}].push_back(transfer->out.back().second);
      if (room_.state[r] != "has returned") room_.state[r].clear();
    }
    room_.changed.notify_all();
    return transfer;
  }
  std::shared_ptr<Transport> split(const std::vector<int>&, int) override { throw std::logic_error("no split here"); }
  int next_group() const override { return 1; }
  std::vector<int> unresponsive_ranks(double) override { return {}; }
  void answer_heartbeat() override {}

 private:
  Room& room_;
  int rank_;
};

// body(comm) on `ranks` threads, which may use send and receive alone; what the first rank throws that fails.
inline void run_ranks(int ranks, const std::function<void(const Communicator&)>& body) {
  Room room;
  room.state.resize(static_cast<size_t>(ranks));
  const auto run = [&](int rank) {
    const Communicator comm(std::make_shared<WatchedTransport>(room, rank));
    std::string fault;
    try {
      body(comm);
      for (size_t c = 0; c < braid::dist::kCollectives; ++c) {
        const auto kind = static_cast<braid::dist::Collective>(c);
        expect(kind == braid::dist::Collective::point || comm.stats().calls[c] == 0,
               "found a call of Communicator::", name(kind), "; expected send and receive alone");
      }
    } catch (const std::exception& e) {
      fault = words("rank ", rank, ": ", e.what());
    }
    std::lock_guard lock(room.mutex);
    if (room.fault.empty()) room.fault = fault;
    room.stop(static_cast<size_t>(rank), "has returned");
    room.changed.notify_all();
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  if (ranks > 2 && room.fault.starts_with("deadlock"))
    hint("a circle, each waits for the next: rank + 1, rank + 2, ... makes one; meeting 0, 1, 2, ... in turn does not");
  if (!room.fault.empty()) throw std::runtime_error(room.fault);
}

}  // namespace course
