// UTF-8, as far as tokens and files need it: is this valid, where does it break, which bytes are only a beginning.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::detail {

// Classifies the beginning of the bytes:  k > 0: a valid character of k bytes;  0: a valid beginning of one, more bytes
// are needed (or there are none);  -k: k bytes that can be part of no character. Overlong forms, surrogates and values
// above U+10FFFF are invalid.
int utf8_prefix(std::string_view bytes);

bool valid_utf8(std::string_view text);

// Checks a text that arrives in pieces cut at any byte.
class Utf8Checker {
 public:
  bool feed(std::string_view piece);  // false: invalid at error_byte(); do not continue
  bool finish();                      // false: the text ends inside a character, which begins at error_byte()
  int64_t error_byte() const { return good_; }

 private:
  std::string pending_;  // at most 3 bytes of an unfinished character
  int64_t good_ = 0;     // bytes that are valid so far
};

// The text with every invalid part replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);

// The text with characters that change the direction of what stands around them (Bidi_Control of Unicode) as \u and
// four digits: what is shown must not lie about the order of its characters.
std::string show_bidi_controls(std::string_view text);

}  // namespace braid::detail
