// Messages between the ranks of a simulated job: each arrives after a delay that the seed gives, in the order in which
// it was sent to that rank by that one; a link that is cut delivers when it is whole again, or never.
#pragma once
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/distributed/comm/transport.h"
#include "tests/simulation/scheduler.h"

namespace braid::simulation {

class Network {
 public:
  Network(Scheduler& scheduler, uint64_t seed, int ranks, std::function<void(const char*)> on_call)
      : scheduler_(scheduler),
        random_(seed),
        next_groups_(static_cast<size_t>(ranks), 1),
        on_call_(std::move(on_call)) {}
  // The transport of a rank among all ranks; the network must live longer.
  std::shared_ptr<dist::Transport> transport(int rank);
  void cut(int a, int b, double until);  // both ways

 private:
  friend class SimulatedTransport;
  friend class SimulatedTransfer;
  using Key = std::tuple<int, int, int, int64_t>;  // group, from, to, number of the message between the two
  struct Message {
    double arrives;
    std::vector<char> bytes;
  };
  double arrival(int from, int to);
  bool reachable(int from, int to) const;

  Scheduler& scheduler_;
  Random random_;
  std::vector<int> next_groups_;
  std::map<Key, Message> messages_;
  std::map<std::pair<int, int>, double> cut_, last_;  // until when; the last arrival on this link
  std::function<void(const char*)> on_call_;          // before each message is sent
};

}  // namespace braid::simulation
