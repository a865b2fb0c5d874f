#include "apps/serve/api/routes.h"

#include <algorithm>

#include "apps/serve/api/api_error.h"
#include "apps/serve/page/page_files.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/completions", Task::completions, "continue prompts of text or token ids, or score them"},
    {"POST", "/v1/chat/completions", Task::chat, "the next answer of a conversation"},
    {"GET", "/v1/models", Task::models, "the model that is served"},
    {"POST", "/tokenize", Task::tokenize, "the tokens of a text"},
    {"POST", "/v1/tokenize", Task::tokenize, "the same"},
    {"POST", "/detokenize", Task::detokenize, "the text of tokens"},
    {"POST", "/v1/detokenize", Task::detokenize, "the same"},
    {"GET", "/tokenizer_info", Task::tokenizer_info, "special tokens of the tokenizer"},
    {"GET", "/v1/tokenizer_info", Task::tokenizer_info, "the same"},
    {"POST", "/v1/inspect", Task::inspect, "attention, compose weights and next tokens of a text"},
    {"GET", "/", Task::page, "the page for browsers, with its files under /page/", false},
    {"GET", "/health", Task::health, "whether the server can answer", false},
    {"GET", "/metrics", Task::metrics, "counters for Prometheus"},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

const Route& find_route(std::string_view method, std::string_view target, std::string& allow) {
  const std::string_view path = target.substr(0, target.find('?'));
  allow.clear();
  const bool of_page = path.starts_with("/page/") && find_page_file(path);
  for (const Route& route : kRoutes) {
    if (path != route.path && !(of_page && route.task == Task::page)) continue;
    const bool head = method == "HEAD" && std::string_view(route.method) == "GET";
    if (method == route.method || head) return route;
    allow += str(allow.empty() ? "" : ", ", route.method);
  }
  if (!allow.empty()) throw ApiError(405, "this route has another method: expected " + allow, "", "method_not_allowed");
  throw ApiError(404, "there is no such route; the routes are listed by braid serve --help", "", "unknown_route");
}

}  // namespace braid::apps::serve
