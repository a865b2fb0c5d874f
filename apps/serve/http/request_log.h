// The lines of `braid serve --log`: what was asked and how it ended, and nothing of texts.
#pragma once
#include <chrono>
#include <string>

#include "apps/serve/api/reply.h"

namespace braid::apps::serve {

enum class LogForm { none, text, json };

struct LogEntry {
  std::string request;  // its number, as in the field X-Request-Id of the answer
  std::string client;   // address
  std::string route;    // "other": none
  int status = 0;
  double seconds = 0;
  TokenCounts tokens;
};

// "req-00000001 /v1/completions 200 12.3 ms\n", or an object of JSON on a line: {"time", in UTC with milliseconds,
// "request", "client", "route", "status", "seconds", "prompt_tokens", "completion_tokens"}; tokens are null where there
// are none.
std::string log_line(LogForm form, const LogEntry& entry, std::chrono::system_clock::time_point time);

}  // namespace braid::apps::serve
