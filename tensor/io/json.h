// JSON of files from anywhere: nesting is capped, a name given twice is an error, and every error names the file and
// the byte. Beside the standard's numbers those that Python's json reads: NaN, Infinity, -Infinity, and numbers beyond
// the range of a double, which are infinite. Includes only the forward declaration of the JSON type; include
// <nlohmann/json.hpp> to use it.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace braid::io {

inline constexpr int max_json_depth = 64;

// `path` and `first_byte` (where the text begins in that file) are for the error messages.
nlohmann::json parse_json(std::string_view text, const std::string& path, int64_t first_byte = 0);

// With the names of objects in their order. max_steps: of the parser, which compares a name with all before it in its
// object and walks, at the end of an object, through what is around it; above it, Error(input).
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& path,
                                          int64_t max_steps = std::numeric_limits<int64_t>::max());

nlohmann::json read_json_file(const std::string& path, int64_t max_bytes = 256 << 20);

// JSON text in which zeros of the same length stand for the numbers that are not finite; those by their index among the
// names, strings, numbers, true, false and null of the text. For parsers of the standard's JSON.
struct FiniteJson {
  std::string text;
  std::map<size_t, double> infinite;
};
FiniteJson finite_json(std::string_view text);

// Behind the object or list that begins at text[begin]; npos when the text ends before it does.
size_t end_of_json(std::string_view text, size_t begin);

// Is the text JSON as far as it goes? It may end anywhere.
bool begins_as_json(std::string_view text);

}  // namespace braid::io
