// Strict JSON for files from anywhere: nesting is capped, a name given twice is an error, and every error names the
// file and the byte. Includes only the forward declaration of the JSON type; include <nlohmann/json.hpp> to use it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace braid::io {

inline constexpr int max_json_depth = 64;

// `path` and `first_byte` (where the text begins in that file) are for the error messages.
nlohmann::json parse_json(std::string_view text, const std::string& path, int64_t first_byte = 0);

nlohmann::json read_json_file(const std::string& path, int64_t max_bytes = 256 << 20);

}  // namespace braid::io
