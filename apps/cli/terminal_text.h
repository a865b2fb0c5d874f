// Text of models on a terminal.
#pragma once
#include <string>

namespace braid::apps {

// A text that must not command the terminal: control characters but line ends and tabs (also U+0080 to U+009F, which
// begin commands too) as \xHH, bytes that are no UTF-8 as U+FFFD.
std::string terminal_text(const std::string& bytes);

}  // namespace braid::apps
