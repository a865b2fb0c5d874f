#include "apps/serve/api/routes.h"

#include "apps/serve/api/api_error.h"
#include "apps/serve/page/page_files.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/completions", Task::completions, "continue prompts of text or token ids, or score them"},
    {"POST", "/v1/chat/completions", Task::chat, "the next answer of a conversation"},
    {"GET", "/v1/models", Task::models, "the model that is served"},
    {"GET", "/v1/models/{model}", Task::model, "the same by its name"},
    {"POST", "/tokenize", Task::tokenize, "the tokens of a text"},
    {"POST", "/v1/tokenize", Task::tokenize, "the same"},
    {"POST", "/detokenize", Task::detokenize, "the text of tokens"},
    {"POST", "/v1/detokenize", Task::detokenize, "the same"},
    {"GET", "/tokenizer_info", Task::tokenizer_info, "special tokens of the tokenizer"},
    {"GET", "/v1/tokenizer_info", Task::tokenizer_info, "the same"},
    {"POST", "/v1/inspect", Task::inspect, "attention, compose weights and next tokens of a text"},
    {"GET", "/", Task::page, "the page for browsers, with its files under /page/", false},
    {"GET", "/health", Task::health, "whether the server can answer", false},
    {"GET", "/ready", Task::ready, "the same", false},
    {"GET", "/version", Task::version, "version and commit of the program"},
    {"GET", "/metrics", Task::metrics, "counters and histograms for Prometheus"},
};

constexpr std::string_view kModelPath = "/v1/models/";

bool is_of(std::string_view path, const Route& route) {
  if (route.task == Task::model) return path.starts_with(kModelPath) && path != kModelPath;
  return path == route.path || (route.task == Task::page && path != "/" && find_page_file(path));
}

// What the client is told instead of a route that is not there: nothing of its own words.
std::string unknown_route(const std::string& path) {
  std::vector<std::string> paths, all;
  for (const Route& route : kRoutes) {
    paths.emplace_back(route.path);
    all.push_back(str(route.method, " ", route.path));
  }
  const std::string of = path.substr(0, path.find('/', 4));
  std::string text = "there is no such route";
  if (of == "/v1/embeddings")
    text = "embeddings are not served: this model writes text; use POST /v1/completions or POST /v1/chat/completions";
  else if (of == "/v1/responses")
    text = "OpenAI's responses are not served; use POST /v1/chat/completions, the same conversation without state";
  else
    text += detail::did_you_mean(path, paths);
  return text + "; routes: " + detail::join(all, ", ");
}

}  // namespace

std::string path_of(std::string_view target) {
  std::string path;
  for (const char c : target.substr(0, target.find('?')))
    if (c != '/' || !path.ends_with('/')) path += c;
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string named_model(std::string_view target) {
  const std::string path = path_of(target);
  if (!path.starts_with(kModelPath)) return "";
  const std::string_view rest = std::string_view(path).substr(kModelPath.size());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name;
  for (size_t i = 0; i < rest.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < rest.size() ? digits.find(static_cast<char>(rest[at] | 0x20)) : std::string_view::npos;
    };
    const bool encoded = rest[i] == '%' && digit(i + 1) != digits.npos && digit(i + 2) != digits.npos;
    name += encoded ? static_cast<char>(16 * digit(i + 1) + digit(i + 2)) : rest[i];
    if (encoded) i += 2;
  }
  return name;
}

std::span<const Route> routes() { return kRoutes; }

const Route& find_route(std::string_view method, std::string_view target, std::string& allow) {
  const std::string path = path_of(target);
  allow.clear();
  for (const Route& route : kRoutes) {
    if (!is_of(path, route)) continue;
    const bool head = method == "HEAD" && std::string_view(route.method) == "GET";
    if (method == route.method || head) return route;
    allow += str(allow.empty() ? "" : ", ", route.method);
  }
  if (!allow.empty()) throw ApiError(405, "this route has another method: expected " + allow, "", "method_not_allowed");
  throw ApiError(404, unknown_route(path), "", "unknown_route");
}

}  // namespace braid::apps::serve
