#include "braid/tensor/base/utf8.h"

#include <algorithm>
#include <utility>

namespace braid::detail {

int utf8_prefix(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return -1;  // a continuation byte, an overlong form, or above U+10FFFF
  const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // Bounds of the second byte exclude overlong forms (E0, F0), surrogates (ED) and values above U+10FFFF (F4).
  unsigned low = 0x80, high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) == bytes.size()) return 0;
    if (byte(static_cast<size_t>(i)) < low || byte(static_cast<size_t>(i)) > high) return -i;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

bool valid_utf8(std::string_view text) {
  Utf8Checker checker;
  return checker.feed(text) && checker.finish();
}

bool Utf8Checker::feed(std::string_view piece) {
  while (!pending_.empty() && !piece.empty()) {  // finish the character that the last piece began
    pending_ += piece.front();
    piece.remove_prefix(1);
    const int k = utf8_prefix(pending_);
    if (k < 0) return false;
    if (k > 0) {
      good_ += k;
      pending_.clear();
    }
  }
  while (!piece.empty()) {
    const int k = utf8_prefix(piece);
    if (k < 0) return false;
    if (k == 0) {
      pending_ = piece;
      return true;
    }
    good_ += k;
    piece.remove_prefix(static_cast<size_t>(k));
  }
  return true;
}

bool Utf8Checker::finish() { return pending_.empty(); }

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const int k = utf8_prefix(bytes);
    const size_t taken = k > 0 ? static_cast<size_t>(k) : k < 0 ? static_cast<size_t>(-k) : bytes.size();
    if (k > 0)
      text += bytes.substr(0, taken);
    else
      text += "\xEF\xBF\xBD";
    bytes.remove_prefix(taken);
  }
  return text;
}

std::string show_bidi_controls(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> controls[] = {
      {"\u061C", "\\u061c"}, {"\u200E", "\\u200e"}, {"\u200F", "\\u200f"}, {"\u202A", "\\u202a"},
      {"\u202B", "\\u202b"}, {"\u202C", "\\u202c"}, {"\u202D", "\\u202d"}, {"\u202E", "\\u202e"},
      {"\u2066", "\\u2066"}, {"\u2067", "\\u2067"}, {"\u2068", "\\u2068"}, {"\u2069", "\\u2069"}};
  std::string shown;
  while (!text.empty()) {
    const auto* found =
        std::ranges::find_if(controls, [&](const auto& control) { return text.starts_with(control.first); });
    const size_t taken = found == std::end(controls) ? 1 : found->first.size();
    shown += found == std::end(controls) ? text.substr(0, 1) : found->second;
    text.remove_prefix(taken);
  }
  return shown;
}

}  // namespace braid::detail
