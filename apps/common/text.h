// Small helpers for words and numbers that the programs show or read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// The shortest decimal that reads back to the same double: 0.1, 1e-08, 3. NaN and infinities as "nan", "inf", "-inf".
std::string shortest(double value);
// For limits in sentences: 1000000 instead of 1e+06.
std::string decimal(double value);
// A fixed number of significant digits for people: human(1234567, 3) = "1.23M", human(0.00012, 2) = "1.2e-04".
std::string human(double value, int digits);
// 75 -> "1m15s", 7300 -> "2h01m", 0.4 -> "0.4s"; negative or not finite -> "?".
std::string duration(double seconds);

// The whole text as a number, or nothing. Floats accept what shortest() writes.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);

// Number of insertions, deletions, substitutions and swaps of neighbours that turn one name into the other.
int edit_distance(std::string_view a, std::string_view b);
// The candidate a person most likely meant, or "" when none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// "; did you mean 'steps'?" or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
// Without spaces, tabs and line ends at both sides.
std::string_view trim(std::string_view text);
bool valid_utf8(std::string_view text);
// Cut to at most `width` columns; control characters become '?', so that foreign text cannot break a message.
std::string preview(std::string_view text, size_t width = 60);
// The argument as a shell would need it typed.
std::string shell_quote(const std::string& argument);

}  // namespace braid::app
