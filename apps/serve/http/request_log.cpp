#include "apps/serve/http/request_log.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace braid::apps::serve {
namespace {

// "2026-11-27T06:03:47.125Z"
std::string utc_text(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

}  // namespace

std::string log_line(LogForm form, const LogEntry& e, std::chrono::system_clock::time_point time) {
  if (form == LogForm::text) {
    char rest[64];
    std::snprintf(rest, sizeof rest, " %d %.1f ms\n", e.status, 1000 * e.seconds);
    return e.request + " " + e.route + rest;
  }
  using nlohmann::ordered_json;
  const auto known = [](int64_t n) { return n < 0 ? ordered_json() : ordered_json(n); };
  const ordered_json line = {{"time", utc_text(time)},
                             {"request", e.request},
                             {"client", e.client},
                             {"route", e.route},
                             {"status", e.status},
                             {"seconds", std::round(e.seconds * 1e6) / 1e6},
                             {"prompt_tokens", known(e.tokens.prompt)},
                             {"completion_tokens", known(e.tokens.completion)}};
  return line.dump() + "\n";
}

}  // namespace braid::apps::serve
