#include "tests/simulation/transport.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "braid/tensor/error.h"

namespace braid::simulation {

class SimulatedTransfer final : public dist::TransferHandle {
 public:
  struct Part {
    Network::Key key;
    int from;  // rank in the group
    dist::Buffer into;
  };
  SimulatedTransfer(Network& network, std::vector<Part> parts) : network_(network), parts_(std::move(parts)) {}

  bool done() override {
    std::erase_if(parts_, [&](const Part& part) {
      const auto found = network_.messages_.find(part.key);
      if (found == network_.messages_.end() || found->second.arrives > network_.scheduler_.now()) return false;
      const std::vector<char>& bytes = found->second.bytes;
      check(static_cast<int64_t>(bytes.size()) == part.into.bytes, "communicator", [&] {
        return str("rank ", part.from, " sent ", bytes.size(), " bytes, expected ", part.into.bytes,
                   ": the ranks call different collectives");
      });
      std::memcpy(part.into.data, bytes.data(), bytes.size());
      network_.messages_.erase(found);
      return true;
    });
    return parts_.empty();
  }
  void yield() override {
    double until = network_.scheduler_.now() + 0.5;
    for (const Part& part : parts_)
      if (const auto found = network_.messages_.find(part.key); found != network_.messages_.end())
        until = std::min(until, found->second.arrives);
    network_.scheduler_.sleep_until(until);
  }
  std::vector<int> pending_peers() const override {
    std::vector<int> peers;
    for (const Part& part : parts_) peers.push_back(part.from);
    return peers;
  }

 private:
  Network& network_;
  std::vector<Part> parts_;
};

class SimulatedTransport final : public dist::Transport {
 public:
  SimulatedTransport(Network& network, int group, int rank, std::vector<int> world)
      : network_(network), group_(group), rank_(rank), world_(std::move(world)) {
    sent_.resize(world_.size());
    received_.resize(world_.size());
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.size()); }
  int world_rank(int rank) const override { return world_.at(static_cast<size_t>(rank)); }

  std::unique_ptr<dist::TransferHandle> start(const std::vector<dist::Buffer>& send,
                                              const std::vector<dist::Buffer>& receive) override {
    network_.on_call_("message");
    std::vector<SimulatedTransfer::Part> parts;
    const int mine = world_rank(rank_);
    for (int r = 0; r < size(); ++r) {
      const auto i = static_cast<size_t>(r);
      if (r == rank_) continue;
      if (send[i].bytes > 0) {
        const double arrives = network_.arrival(mine, world_rank(r));
        network_.messages_[{group_, mine, world_rank(r), sent_[i]++}] = {arrives,
                                                                         {send[i].data, send[i].data + send[i].bytes}};
        network_.scheduler_.wake(world_rank(r), arrives);
      }
      if (receive[i].bytes > 0) parts.push_back({{group_, world_rank(r), mine, received_[i]++}, r, receive[i]});
    }
    return std::make_unique<SimulatedTransfer>(network_, std::move(parts));
  }

  std::shared_ptr<dist::Transport> split(const std::vector<int>& members, int group) override {
    std::vector<int> world;
    int rank = -1;
    for (const int m : members) {
      if (m == rank_) rank = static_cast<int>(world.size());
      world.push_back(world_rank(m));
    }
    own_next_group() = group + 1;
    return std::make_shared<SimulatedTransport>(network_, group, rank, std::move(world));
  }
  int next_group() const override { return own_next_group(); }

  // A rank that lives answers while it waits, and it soon does.
  std::vector<int> unresponsive_ranks(double seconds) override {
    Scheduler& scheduler = network_.scheduler_;
    const double begin = scheduler.now();
    scheduler.sleep_until(begin + seconds);
    std::vector<int> silent;
    const int mine = world_rank(rank_), all = static_cast<int>(network_.next_groups_.size());
    for (int r = 0; r < all; ++r)
      if (r != mine && (!scheduler.runs_before(r, begin) || !network_.reachable(mine, r))) silent.push_back(r);
    return silent;
  }
  void answer_heartbeat() override {}

 private:
  int& own_next_group() const { return network_.next_groups_[static_cast<size_t>(world_rank(rank_))]; }

  Network& network_;
  int group_, rank_;
  std::vector<int> world_;
  std::vector<int64_t> sent_, received_;  // messages so far, to and from each rank
};

std::shared_ptr<dist::Transport> Network::transport(int rank) {
  std::vector<int> world(next_groups_.size());
  std::iota(world.begin(), world.end(), 0);
  return std::make_shared<SimulatedTransport>(*this, 0, rank, std::move(world));
}

void Network::cut(int a, int b, double until) { cut_[std::minmax(a, b)] = until; }

bool Network::reachable(int from, int to) const {
  const auto found = cut_.find(std::minmax(from, to));
  return found == cut_.end() || found->second <= scheduler_.now();
}

double Network::arrival(int from, int to) {
  const auto cut = cut_.find(std::minmax(from, to));
  const double begin = std::max(scheduler_.now(), cut == cut_.end() ? 0 : cut->second);
  const double delay = random_.one_in(50) ? random_.seconds(0.5) : random_.seconds(1e-3);
  double& last = last_[{from, to}];
  return last = std::max(last, begin + delay);
}

}  // namespace braid::simulation
