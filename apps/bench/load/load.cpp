#include "apps/bench/load/load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "braid/tensor/error.h"
#include "braid/tensor/random.h"

namespace braid::apps {
namespace {

using Clock = HttpClient::Clock;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

// Moments of arrival of a Poisson process of this rate: the gaps are -log(u) / rate.
std::vector<double> arrivals(const LoadPlan& plan) {
  std::vector<double> moments;
  const RandomKey key = child({plan.seed, 0}, "arrivals");
  double t = 0;
  for (uint64_t i = 0;; ++i) {
    t += -std::log(1 - unit(random_bits(i, key))) / plan.rate;
    if (t >= plan.seconds) return moments;
    moments.push_back(t);
  }
}

class Load {
 public:
  Load(const LoadPlan& plan, const std::function<bool()>& stop) : plan_(plan), stop_(stop) {
    if (plan.rate > 0) arrivals_ = arrivals(plan);
  }

  std::vector<LoadRecord> run() {
    std::vector<std::thread> clients;
    for (int64_t c = 0; c < plan_.clients; ++c) clients.emplace_back([this] { client(); });
    for (std::thread& client : clients) client.join();
    std::ranges::sort(records_, {}, &LoadRecord::due);
    return std::move(records_);
  }

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void client() {
    HttpClient http(plan_.url);
    while (!stop_ || !stop_()) {
      const int64_t i = next_++;
      LoadRecord record;
      if (plan_.rate > 0) {
        if (i >= std::ssize(arrivals_)) return;
        record.due = arrivals_[static_cast<size_t>(i)];
        wait_until(record.due);
      } else {
        record.due = now();
        if (record.due >= plan_.seconds) return;
      }
      request(http, i, record);
      const std::lock_guard lock(mutex_);
      records_.push_back(std::move(record));
    }
  }

  void wait_until(double due) {
    while (now() < due && (!stop_ || !stop_()))
      std::this_thread::sleep_until(std::min(start_ + seconds(due), Clock::now() + std::chrono::milliseconds(100)));
  }

  void request(HttpClient& http, int64_t i, LoadRecord& record) {
    StreamedAnswer answer;
    try {
      const HttpResponse response =
          http.send({.method = "POST", .target = "/v1/completions", .body = plan_.body(i), .key = plan_.key},
                    Clock::now() + seconds(plan_.timeout), [&](std::string_view bytes) { answer.piece(bytes, now()); });
      record.status = response.status;
      if (response.status != 200)
        record.error = str("status ", response.status);
      else if (!answer.error().empty())
        record.error = answer.error();
      else if (!answer.complete())
        record.error = "the stream ended without [DONE]";
    } catch (const std::exception& error) {
      record.error = error.what();
    }
    record.first = answer.first, record.end = answer.last;
    record.gaps = std::move(answer.gaps);
    record.tokens = answer.tokens();
    // A server that answers with an error at once must not be asked again at once.
    if (record.status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  const LoadPlan& plan_;
  const std::function<bool()>& stop_;
  std::vector<double> arrivals_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<int64_t> next_ = 0;
  std::mutex mutex_;
  std::vector<LoadRecord> records_;
};

}  // namespace

void StreamedAnswer::piece(std::string_view bytes, double now) {
  for (const char c : bytes) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    if (line_.starts_with("data:")) event(std::string_view(line_).substr(line_.starts_with("data: ") ? 6 : 5), now);
    line_.clear();
  }
}

void StreamedAnswer::event(std::string_view data, double now) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const nlohmann::json json = nlohmann::json::parse(data, nullptr, false);
  if (!json.is_object()) {
    error_ = "an event is no JSON object";
    return;
  }
  if (json.contains("error")) error_ = "the server reports an error within the stream";
  if (json.contains("usage") && json["usage"].is_object())
    usage_ = json["usage"].value("completion_tokens", int64_t{-1});
  if (!json.contains("choices") || !json["choices"].is_array() || json["choices"].empty()) return;
  const nlohmann::json& choice = json["choices"][0];
  if (!choice.contains("text") || choice["text"] == "") return;
  ++events_;
  if (events_ == 1)
    first = now;
  else
    gaps.push_back(now - last);
  last = now;
}

std::vector<LoadRecord> run_load(const LoadPlan& plan, const std::function<bool()>& stop) {
  return Load(plan, stop).run();
}

Percentiles percentiles(std::vector<double> values) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {none, none, none, none};
  std::ranges::sort(values);
  // The smallest value that at least this share of all does not exceed.
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  return {at(0.5), at(0.9), at(0.99), values.back()};
}

}  // namespace braid::apps
