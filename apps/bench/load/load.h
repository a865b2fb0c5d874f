// Load on a server: clients that each wait for their answer (closed loop), or requests that arrive by the clock whether
// or not the server keeps up (open loop).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/load/http_client.h"

namespace braid::apps {

struct LoadPlan {
  Url url;
  std::string key;                           // of the server, "" for none
  int64_t clients = 1;                       // closed loop: requests at a time; open loop: most of them
  double rate = 0;                           // open loop: mean arrivals a second, at random moments; 0: closed loop
  double seconds = 10;                       // new requests begin for so long
  double timeout = 60;                       // of a request
  uint64_t seed = 0;                         // of the moments of arrival
  std::function<std::string(int64_t)> body;  // of request i: a streamed completion
};

// A request and its answer; times in seconds from the start of the load.
struct LoadRecord {
  double due = 0;             // when it should begin: with open loop, waiting for a free client counts as latency
  double first = 0, end = 0;  // first and last token; 0 where there was none
  std::vector<double> gaps;   // between pieces of text
  int64_t tokens = 0;
  int status = 0;     // of HTTP; 0: no response
  std::string error;  // "" where the answer is complete
};

// One answer that streams by server-sent events, piece by piece as they arrive.
class StreamedAnswer {
 public:
  void piece(std::string_view bytes, double now);
  int64_t tokens() const { return usage_ >= 0 ? usage_ : events_; }  // as the server counted them
  bool complete() const { return done_; }
  const std::string& error() const { return error_; }  // of an error event, or of one that is no JSON
  double first = 0, last = 0;
  std::vector<double> gaps;

 private:
  void event(std::string_view data, double now);
  std::string line_, error_;
  int64_t events_ = 0, usage_ = -1;
  bool done_ = false;
};

// All requests of the plan, in the order in which they were due. stop: polled; true begins no more.
std::vector<LoadRecord> run_load(const LoadPlan& plan, const std::function<bool()>& stop = {});

struct Percentiles {
  double p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Percentiles percentiles(std::vector<double> values);  // NaN without values

}  // namespace braid::apps
