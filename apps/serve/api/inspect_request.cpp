#include "apps/serve/api/inspect_request.h"

#include <algorithm>
#include <limits>

#include "apps/serve/api/api_error.h"
#include "apps/serve/api/request_fields.h"

namespace braid::apps::serve {
namespace {

using nlohmann::json;
using Stage = nn::CompositionScale::Stage;

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();  // of a layer, head or position

std::vector<int64_t> positions(const Fields& fields, const char* name) {
  std::vector<int64_t> list;
  const json* value = fields.find(name);
  if (!value) return list;
  if (!value->is_array()) fields.bad(name, "a list of integers", *value);
  for (const int32_t x : token_ids(fields, name, *value, kLargest)) list.push_back(x);
  return list;
}

Stage parse_stage(const Fields& scale, const char* name, const std::string& prefix) {
  Stage stage;
  const json* value = scale.find(name);
  if (!value) return stage;
  if (!value->is_object()) scale.bad(name, "an object of factors", *value);
  const Fields factors(*value, prefix + name + ".");
  for (const auto& [term, factor] : {std::pair{"static", &Stage::base},
                                     {"query", &Stage::query},
                                     {"key", &Stage::key},
                                     {"query_gate", &Stage::query_gate},
                                     {"key_gate", &Stage::key_gate}})
    stage.*factor = factors.number(term, 0, 1).value_or(1);
  for (const auto& [term, factor] : value->items()) {
    const char* known[] = {"static", "query", "key", "query_gate", "key_gate"};
    if (std::ranges::find(known, term) == std::end(known))
      throw ApiError(400,
                     "'" + prefix + name + "' has a factor that is not known: expected static, query, key, " +
                         "query_gate and key_gate",
                     prefix + name, "invalid_value");
  }
  return stage;
}

std::vector<models::InspectionRequest::Scale> parse_scales(const Fields& fields) {
  std::vector<models::InspectionRequest::Scale> scales;
  const json* value = fields.find("scales");
  if (!value) return scales;
  if (!value->is_array()) fields.bad("scales", "a list of objects", *value);
  for (const json& entry : *value) {
    const std::string name = str("scales[", scales.size(), "]");
    if (!entry.is_object()) fields.bad(name, "an object with layer, pre and post", entry);
    const Fields scale(entry, name + ".");
    scales.push_back({scale.integer("layer", 0, kLargest),
                      {parse_stage(scale, "pre", name + "."), parse_stage(scale, "post", name + ".")}});
  }
  return scales;
}

}  // namespace

InspectRequest parse_inspect_request(std::string_view body, const RequestLimits& limits) {
  const json object = parse_body(body);
  const Fields fields(object);
  InspectRequest request;
  models::InspectionRequest& r = request.inspection;
  request.prompt = fields.text("prompt");
  if (const json* tokens = fields.find("tokens")) {
    if (!tokens->is_array()) fields.bad("tokens", "a list of token ids", *tokens);
    r.tokens = token_ids(fields, "tokens", *tokens, limits.ids);
  }
  if (request.prompt.has_value() == fields.has("tokens"))
    throw ApiError(400, str("expected one of 'prompt' and 'tokens', found ", request.prompt ? "both" : "neither"),
                   "prompt", "invalid_value");
  r.layer = fields.integer("layer", 0, kLargest);
  r.heads = positions(fields, "heads");
  r.queries = positions(fields, "queries");
  r.maps = fields.boolean("maps").value_or(true);
  r.weights = fields.boolean("weights").value_or(true);
  r.candidates = fields.integer("candidates", 0, models::InspectionLimits().candidates).value_or(r.candidates);
  if (const json* value = fields.find("pair")) {
    const std::vector<int64_t> pair = positions(fields, "pair");
    if (pair.size() != 2) fields.bad("pair", "[query, key]", *value);
    r.pair = {pair[0], pair[1]};
  }
  r.scales = parse_scales(fields);
  const std::string format = fields.text("format").value_or("json"), dtype = fields.text("dtype").value_or("f32");
  if (format != "json" && format != "safetensors") fields.bad("format", "json or safetensors", *fields.find("format"));
  if (dtype != "f32" && dtype != "f16") fields.bad("dtype", "f32 or f16", *fields.find("dtype"));
  request.binary = format == "safetensors";
  request.dtype = dtype == "f16" ? DType::f16 : DType::f32;
  return request;
}

}  // namespace braid::apps::serve
