// Histograms of the texts that were made, as Prometheus reads them; named as those of vLLM, with braid_ in front:
// metrics.md.
#pragma once
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "braid/models/inference/request.h"

namespace braid::apps::serve {

class Histogram {
 public:
  // bounds: upper ones of the buckets, which contain them, in ascending order.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size()) {}
  void add(double value);
  // HELP, TYPE, the buckets (each with those below it, the last one +Inf), sum and count.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;  // of each bucket alone; beyond the last bound: count_ alone
  int64_t count_ = 0;
  double sum_ = 0;
};

// Members may be called from any thread.
class TextHistograms {
 public:
  TextHistograms();
  // The last update of a text. new_tokens: without those behind a stop string. max_tokens 0: a prompt was scored, and
  // there is no first token. Texts that were cancelled or failed do not count.
  void add(const models::Update& last, int64_t new_tokens, int64_t max_tokens);
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  Histogram first_token_, output_token_, latency_, queue_, prompt_tokens_, new_tokens_;
};

}  // namespace braid::apps::serve
