#include "braid/models/data/tokenizers/precompiled.h"

#include <utf8proc.h>

#include <cstring>

#include "braid/models/data/tokenizers/unicode.h"

namespace braid::models::text {

namespace {

// None: the text is not base 64.
std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) < 8) continue;
    bytes += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return bytes;
}

// Bytes of the grapheme that the text begins with.
size_t grapheme_length(std::string_view text) {
  size_t end = 0;
  utf8proc_int32_t state = 0;
  char32_t before = next_code_point(text, end);
  while (end < text.size()) {
    size_t behind = end;
    const char32_t c = next_code_point(text, behind);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before), static_cast<utf8proc_int32_t>(c),
                                         &state))
      break;
    before = c;
    end = behind;
  }
  return end;
}

}  // namespace

Precompiled::Precompiled(const Section& section) {
  const auto bytes = from_base64(section.text("precompiled_charsmap"));
  uint32_t size = 0;  // bytes of the array
  if (bytes && bytes->size() >= sizeof size) std::memcpy(&size, bytes->data(), sizeof size);
  if (!bytes || size == 0 || size % 4 != 0 || size > bytes->size() - sizeof size)
    section.fail("precompiled_charsmap", "a double array and its texts, in base 64", "another text");
  array_.resize(size / 4);
  std::memcpy(array_.data(), bytes->data() + sizeof size, size);
  replacements_ = bytes->substr(sizeof size + size);
}

// The text for the shortest beginning of the part that is in the array. A unit: bits 0-7 the byte that leads to it, bit
// 8 whether a text ends there, bits 10-30 the offset of what follows, by 256 where bit 9 is set; of an end, the place
// of its text.
std::optional<std::string_view> Precompiled::replacement(std::string_view part) const {
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); };
  uint32_t at = offset(array_[0]);
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    at ^= byte;
    if (byte == 0 || at >= array_.size() || (array_[at] & (1u << 31 | 0xFF)) != byte) return std::nullopt;
    const uint32_t unit = array_[at];
    at ^= offset(unit);
    if (at >= array_.size()) return std::nullopt;
    if ((unit >> 8 & 1) == 0) continue;
    const size_t begin = array_[at] & ~(1u << 31);
    if (begin > replacements_.size()) return std::nullopt;
    return std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

std::string Precompiled::operator()(std::string_view text) const {
  constexpr size_t kLongest = 5;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at + grapheme_length(text.substr(at));
    if (end - at <= kLongest) {
      if (const auto other = replacement(text.substr(at, end - at))) {
        result += *other;
        at = end;
        continue;
      }
    }
    while (at < end) {
      const size_t length = utf8_length(text[at]);
      const std::string_view character = text.substr(at, length);
      result += replacement(character).value_or(character);
      at += length;
    }
  }
  return result;
}

}  // namespace braid::models::text
