#include "tests/soak/healthy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "tests/apps/serve/client.h"

namespace braid::soak {

using Clock = std::chrono::steady_clock;

HealthyClient::HealthyClient(int port, Report& report) : port_(port), report_(report), thread_([this] { run(); }) {}

void HealthyClient::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  std::ranges::sort(latencies_);
}

void HealthyClient::run() {
  const std::string request = test::Client::post_text(
      "/v1/completions",
      R"({"prompt": "healthy", "max_tokens": 8, "temperature": 0, "logprobs": 2, "ignore_eos": true})");
  std::unique_ptr<test::Client> client;
  std::string first;
  while (!stopping_) {
    if (!client) client = std::make_unique<test::Client>(port_);
    const auto begin = Clock::now();
    client->send(request);
    const test::Answer answer = client->answer();
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (answer.status == 503) {
      report_.add("healthy client: no room");
    } else if (answer.status != 200) {
      report_.fault("the healthy client got status " + std::to_string(answer.status) + " " + answer.body);
      client.reset();
    } else {
      const std::string choices = answer.json().at("choices").dump();
      if (first.empty()) first = choices;
      if (choices != first) report_.fault("the healthy client got another answer: " + choices);
      latencies_.push_back(ms);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

double HealthyClient::latency(double share) const {
  if (latencies_.empty()) return std::nan("");
  const auto last = static_cast<double>(latencies_.size() - 1);
  return latencies_[static_cast<size_t>(std::lround(share * last))];
}

}  // namespace braid::soak
