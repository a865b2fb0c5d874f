// The body of /v1/inspect: JSON text -> checked struct. What depends on the model's layers is checked by
// models::inspect().
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "apps/serve/api/requests.h"
#include "braid/models/inspect/inspection.h"

namespace braid::apps::serve {

struct InspectRequest {
  models::InspectionRequest inspection;
  std::optional<std::string> prompt;  // instead of inspection.tokens
  bool binary = false;                // a safetensors file instead of JSON
  DType dtype = DType::f32;
};

// POST /v1/inspect. ApiError(400) that names the field and its limits, also for factors with a name that is not known.
InspectRequest parse_inspect_request(std::string_view body, const RequestLimits& limits);

}  // namespace braid::apps::serve
