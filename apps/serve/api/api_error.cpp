#include "apps/serve/api/api_error.h"

#include <nlohmann/json.hpp>

namespace braid::apps::serve {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

std::string ApiError::body() const {
  using nlohmann::ordered_json;
  const auto text_or_null = [](const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); };
  const ordered_json error = {{"message", message_},
                              {"type", type_of(status_)},
                              {"param", text_or_null(param_)},
                              {"code", text_or_null(code_)}};
  return ordered_json{{"error", error}}.dump() + "\n";
}

}  // namespace braid::apps::serve
