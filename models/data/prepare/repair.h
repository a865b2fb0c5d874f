// Text that is no UTF-8, made so.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::models::text {

// U+FFFD takes the place of every ill-formed part, or nothing does; `count` grows by their number.
std::string repaired_utf8(std::string_view text, bool replace, int64_t& count);
// The same for JSON text, whose strings may also have half of a surrogate pair as an escape (\ud83d).
std::string repaired_json(std::string_view text, bool replace, int64_t& count);

}  // namespace braid::models::text
