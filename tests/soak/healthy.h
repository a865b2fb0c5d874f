// The client that the others must not harm: it asks the same again and again, one request at a time.
#pragma once
#include <thread>

#include "tests/soak/report.h"

namespace braid::soak {

class HealthyClient {
 public:
  // Begins to ask. An answer that differs from the first one, or none, is a fault of the report.
  HealthyClient(int port, Report& report);
  ~HealthyClient() { stop(); }
  void stop();

  // Quantile of the latency of complete answers, ms, once stopped; `share` 0.5: the median. NaN without answers.
  double latency(double share) const;
  int64_t answers() const { return static_cast<int64_t>(latencies_.size()); }

 private:
  void run();
  int port_;
  Report& report_;
  std::vector<double> latencies_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace braid::soak
