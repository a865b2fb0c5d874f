// The routes of the server, as a table; the pages, the metrics and the tests are made from it.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace braid::apps::serve {

enum class Task { completions, chat, models, tokenize, detokenize, tokenizer_info, inspect, page, health, metrics };

struct Route {
  const char *method, *path;
  Task task;
  const char* help;
  bool needs_key = true;
};

std::span<const Route> routes();
// The route of a request; the part of the target from '?' on does not count. HEAD is GET without a body. ApiError(404)
// for other paths; ApiError(405) for other methods, and `allow` is set to those of the path.
const Route& find_route(std::string_view method, std::string_view target, std::string& allow);

}  // namespace braid::apps::serve
