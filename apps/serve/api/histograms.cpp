#include "apps/serve/api/histograms.h"

#include <algorithm>
#include <cstdio>

#include "apps/cli/exposition.h"
#include "braid/tensor/base/strings.h"

namespace braid::apps::serve {
namespace {

constexpr double kSeconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                               0.5,    1,       2.5,    5,     10,     25,    50,   100,   250,  500, 1000};
constexpr double kTokens[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                              1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};

std::string bound_text(double bound) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", bound);
  return text;
}

}  // namespace

void Histogram::add(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value);
  if (bucket != bounds_.end()) ++counts_[static_cast<size_t>(bucket - bounds_.begin())];
  ++count_;
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  Exposition metric;
  metric.begin(name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i)
    metric.sample(std::to_string(below += counts_[i]), {{"le", bound_text(bounds_[i])}}, "_bucket");
  metric.sample(std::to_string(count_), {{"le", "+Inf"}}, "_bucket");
  metric.sample(detail::shortest(sum_), {}, "_sum");
  metric.sample(std::to_string(count_), {}, "_count");
  return metric.text();
}

TextHistograms::TextHistograms()
    : first_token_(kSeconds),
      output_token_(kSeconds),
      latency_(kSeconds),
      queue_(kSeconds),
      prompt_tokens_(kTokens),
      new_tokens_(kTokens) {}

void TextHistograms::add(const models::Update& last, int64_t new_tokens, int64_t max_tokens) {
  using models::StopReason;
  if (last.reason == StopReason::cancelled || last.reason == StopReason::failed) return;
  const double first = last.queue_seconds + last.prompt_seconds;
  const std::lock_guard lock(mutex_);
  if (max_tokens > 0) first_token_.add(first);
  if (last.steps > 0) output_token_.add(last.step_seconds / static_cast<double>(last.steps));
  latency_.add(first + last.step_seconds);
  queue_.add(last.queue_seconds);
  prompt_tokens_.add(static_cast<double>(last.prompt_tokens));
  new_tokens_.add(static_cast<double>(new_tokens));
}

std::string TextHistograms::text() const {
  const std::lock_guard lock(mutex_);
  return first_token_.text("braid_time_to_first_token_seconds", "From arrival in the queue to the first new token.") +
         output_token_.text("braid_time_per_output_token_seconds", "Mean of the new tokens of a text but the first.") +
         latency_.text("braid_e2e_request_latency_seconds", "From arrival in the queue to the last new token.") +
         queue_.text("braid_request_queue_time_seconds", "Waiting before the prompt is computed.") +
         prompt_tokens_.text("braid_request_prompt_tokens", "Tokens of a prompt.") +
         new_tokens_.text("braid_request_generation_tokens", "New tokens of a text.");
}

}  // namespace braid::apps::serve
