// Counters of the server, as Prometheus reads them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "apps/serve/api/histograms.h"
#include "braid/models/inference/engine.h"

namespace braid::apps::serve {

// Kept by the thread of the connections.
struct HttpCounts {
  std::map<std::pair<std::string, int>, int64_t> answers;  // by path ("other": no route) and status
  int64_t connections = 0, requests = 0;                   // now
  int64_t accepted = 0, evicted = 0, timeouts = 0, slow_readers = 0, left = 0;
};

// The text of /metrics.
std::string metrics_text(const HttpCounts& counts, const models::EngineLoad& load, const TextHistograms& texts);

}  // namespace braid::apps::serve
