// Small helpers for words and numbers in messages and configuration files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::detail {

// The shortest decimal that reads back to the same double: 0.1, 1e-08, 3. NaN and infinities as "nan", "inf", "-inf".
std::string shortest(double value);
// For limits in messages: 1000000 instead of 1e+06.
std::string decimal(double value);

// The lowest `digits` hexadecimal digits or more: hex(255, 4) = "00ff".
std::string hex(uint64_t value, int digits);
// 1.5 MiB as "2 MiB": rounded up.
std::string mebibytes(int64_t bytes);

// The whole text as a number, or nothing. Floats accept what shortest() writes.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);

// Number of insertions, deletions, substitutions and swaps of neighbours that turn one name into the other.
int edit_distance(std::string_view a, std::string_view b);
// The candidate a person most likely meant, or "" when none is near. Near is also the same last word: train.lr, run.lr.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// "; did you mean 'steps'?" or ""; up to four names that have the same last word.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
// Without spaces, tabs and line ends at both sides.
std::string_view trim(std::string_view text);
// Cut to at most `width` bytes at a character; control characters become '?', so that foreign text cannot break a
// message.
std::string preview(std::string_view text, size_t width = 60);

}  // namespace braid::detail
