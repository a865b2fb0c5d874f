// Small helpers for what the programs show; those that the library needs too are in tensor/base/strings.h.
#pragma once
#include <string>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"

namespace braid::apps {

using detail::decimal, detail::did_you_mean, detail::edit_distance, detail::join, detail::nearest, detail::parse_float,
    detail::parse_int, detail::preview, detail::shortest, detail::split, detail::trim, detail::valid_utf8;

// A fixed number of significant digits for people: human(1234567, 3) = "1.23M", human(0.00012, 2) = "1.2e-04".
std::string human(double value, int digits);
// 75 -> "1m15s", 7300 -> "2h01m", 0.4 -> "0.4s"; negative or not finite -> "?".
std::string duration(double seconds);
// For plans: 0.35 -> "350 ms", 90 -> "90.0 seconds", 1.24e7 -> "144 days"; negative or not finite -> "?".
std::string time_in_words(double seconds);
// For a terminal: characters that print as they are, `line_end` for line ends, other control characters as \xHH, bytes
// that are no UTF-8 as U+FFFD.
std::string printable(const std::string& bytes, const std::string& line_end = "\\n\n");
// The argument as a shell would need it typed.
std::string shell_quote(const std::string& argument);

}  // namespace braid::apps
