// The counts and faults of a phase. Threads add to it at the same time.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace braid::soak {

using Random = std::mt19937_64;

inline uint64_t below(Random& random, uint64_t end) { return random() % end; }

class Report {
 public:
  void answer(int status) { add("status " + std::to_string(status)); }
  void add(const std::string& what, int64_t count = 1) {
    const std::lock_guard lock(mutex_);
    counts_[what] += count;
  }
  // Something that must never be; of many, the first ones are kept in words.
  void fault(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (++faults_ <= 10) words_.push_back(what);
  }
  int64_t count(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    const auto at = counts_.find(what);
    return at == counts_.end() ? 0 : at->second;
  }
  std::map<std::string, int64_t> counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  int64_t faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
  std::vector<std::string> words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
  std::vector<std::string> words_;
  int64_t faults_ = 0;
};

// Clients at the same time, each in a thread with draws of its own. step(random, first) does some of the work, the
// first piece of it by the number `first`, and returns how much that was; until `count` is done, and no faster than
// `rate` a second (0: as fast as it goes). An exception is a fault and ends its client.
struct Work {
  int64_t count = 0;
  double rate = 0;
  uint64_t seed = 1;
};
void in_threads(int threads, const Work& work, Report& report, const std::function<int64_t(Random&, int64_t)>& step);

// 127.0.0.2 to 127.0.0.201: ports of closed connections stay taken for a minute, on each address its own.
inline uint32_t some_address(Random& random) { return 0x7F000002U + static_cast<uint32_t>(below(random, 200)); }

}  // namespace braid::soak
