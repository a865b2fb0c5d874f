// Recognises the byte tokenizer's tokenizer.json.
#pragma once
#include <nlohmann/json.hpp>

namespace braid::models::text {

bool is_byte_tokenizer(const nlohmann::json& root);

}  // namespace braid::models::text
