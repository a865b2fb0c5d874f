#include "braid/models/data/prepare/repair.h"

#include <algorithm>

#include "braid/tensor/base/utf8.h"

namespace braid::models::text {
namespace {

// The first digit behind "\ud" of a surrogate at the beginning of the text, in small letters; 0: there is none.
char surrogate(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u' || (text[2] | 0x20) != 'd') return 0;
  for (const char c : text.substr(3, 3))
    if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))) return 0;
  const char digit = text[3] <= '9' ? text[3] : static_cast<char>(text[3] | 0x20);
  return digit >= '8' ? digit : '\0';
}
bool is_high(char digit) { return digit == '8' || digit == '9' || digit == 'a' || digit == 'b'; }

}  // namespace

std::string repaired_utf8(std::string_view text, bool replace, int64_t& count) {
  std::string result;
  while (!text.empty()) {
    const int k = detail::utf8_prefix(text);
    const size_t taken = k > 0 ? static_cast<size_t>(k) : k < 0 ? static_cast<size_t>(-k) : text.size();
    if (k > 0) result += text.substr(0, taken);
    if (k <= 0 && replace) result += "\uFFFD";
    count += k <= 0;
    text.remove_prefix(taken);
  }
  return result;
}

std::string repaired_json(std::string_view text, bool replace, int64_t& count) {
  const std::string utf8 = detail::valid_utf8(text) ? std::string(text) : repaired_utf8(text, replace, count);
  std::string result;
  for (std::string_view rest = utf8; !rest.empty();) {
    const size_t at = rest.find('\\');
    result += rest.substr(0, at);
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at);
    const char digit = surrogate(rest), low = digit ? surrogate(rest.substr(6)) : '\0';
    const bool pair = digit && is_high(digit) && low && !is_high(low);
    const bool lone = digit && !pair;
    const size_t taken = std::min<size_t>(pair ? 12 : digit ? 6 : 2, rest.size());
    if (!lone) result += rest.substr(0, taken);
    if (lone && replace) result += "\\ufffd";
    count += lone;
    rest.remove_prefix(taken);
  }
  return result;
}

}  // namespace braid::models::text
