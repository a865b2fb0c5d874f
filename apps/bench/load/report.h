// What `braid bench serve` prints and draws: latencies as percentiles and as curves.
#pragma once
#include <string>
#include <vector>

#include "apps/bench/load/load.h"

namespace braid::apps {

// The requests of one load. Only those that were answered completely count for latencies and tokens.
struct LoadLevel {
  std::string name;    // "4 clients", "2.5 requests/s"
  double seconds = 0;  // until the last answer
  std::vector<LoadRecord> records;

  int64_t answered() const;
  int64_t tokens() const;
  std::vector<double> first_token() const;  // from when it was due to the first piece of text, s
  std::vector<double> between_tokens() const;
  std::vector<double> whole() const;  // from when it was due to the last piece of text, s
  // Errors and how often, the most frequent first: "3 x status 429".
  std::vector<std::string> errors() const;
};

std::string load_table(const std::vector<LoadLevel>& levels);
std::string load_json(const std::vector<LoadLevel>& levels);
// For each latency the share of values that are at most x, a curve for each load.
std::string load_chart(const std::vector<LoadLevel>& levels, const std::string& title);

}  // namespace braid::apps
