// The routes of the server, as a table; the pages, the metrics and the tests are made from it.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace braid::apps::serve {

enum class Task {
  completions,
  chat,
  models,
  model,
  tokenize,
  detokenize,
  tokenizer_info,
  inspect,
  page,
  health,
  ready,
  version,
  metrics
};

struct Route {
  const char *method, *path;  // {model} at the end of a path: any name
  Task task;
  const char* help;
  bool needs_key = true;
};

std::span<const Route> routes();
// The path of a target: without what begins at '?', each doubled slash once, none at the end.
std::string path_of(std::string_view target);
// The name in the place of {model}, with its percent-encoding undone; "" for the paths of other routes.
std::string named_model(std::string_view target);
// The route of a request. HEAD is GET without a body. ApiError(404) for other paths, which names the nearest route, or
// what serves instead of OpenAI's that are not served, and lists all routes; ApiError(405) for other methods,
// and `allow` is set to those of the path.
const Route& find_route(std::string_view method, std::string_view target, std::string& allow);

}  // namespace braid::apps::serve
