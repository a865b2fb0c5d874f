#include "braid/tensor/base/utf8.h"

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

}  // namespace braid::detail
