// JSON as Python's json.dumps writes it with ensure_ascii=False: as models saw tools and calls in training.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace braid::models::text {

std::string json_text(const nlohmann::ordered_json& value);

}  // namespace braid::models::text
