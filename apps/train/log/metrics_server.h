// GET /metrics of a run, on this machine's own loopback.
#pragma once
#include <functional>
#include <string>
#include <thread>

#include "apps/serve/http/bound_address.h"

namespace braid::apps {

class MetricsServer {
 public:
  // Listens on the address, and answers each request with text() from a thread of its own. One connection is answered
  // at a time and has two seconds; others wait. Error(setting) where another program listens on the port by now.
  MetricsServer(serve::BoundAddress address, std::function<std::string()> text);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  ~MetricsServer();  // at once, also in the middle of an answer

 private:
  void run();
  void answer(int connection);
  bool ready(int descriptor, short events, int milliseconds) const;

  std::function<std::string()> text_;
  int listener_ = -1, stop_ = -1;  // stop_: readable when the thread must end
  std::thread thread_;
};

}  // namespace braid::apps
