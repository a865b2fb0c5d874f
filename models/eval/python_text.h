// Text as Python's str sees it, by which lm-evaluation-harness makes its prompts: white space and case of Unicode.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::models::eval {

// str.isspace(): Unicode's white space and U+001C to U+001F.
bool is_space(char32_t c);
// str.lstrip(), str.rstrip(), str.strip(). Bytes that are no UTF-8 are no white space.
std::string_view lstrip(std::string_view text);
std::string_view rstrip(std::string_view text);
std::string_view strip(std::string_view text);

// str.capitalize() of UTF-8: the first character in title case, the others in lower case.
std::string capitalize(std::string_view text);

// len(re.split(r"\s+", text)): 1 + the runs of white space.
int64_t count_words(std::string_view text);

}  // namespace braid::models::eval
