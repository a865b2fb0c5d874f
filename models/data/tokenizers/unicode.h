// Code points: UTF-8, the classes that tokenizer.json refers to, normalisation forms, and the alphabet of byte-level
// tokenizers. Texts are valid UTF-8 unless said otherwise. The tables are those of Hugging Face tokenizers 0.23.3.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace braid::models::text {

// The code point at text[at]; moves `at` behind it.
char32_t next_code_point(std::string_view text, size_t& at);
// The code point that ends before text[at], which is not 0; moves `at` to its first byte.
char32_t previous_code_point(std::string_view text, size_t& at);
void append_utf8(std::string& text, char32_t c);
// Bytes of the character that begins with this byte.
inline size_t utf8_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool is_white_space(char32_t c);  // White_Space: U+0009-000D, 20, 85, A0, 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000
bool is_word_character(char32_t c);             // around added tokens with single_word
std::string lower_case(std::string_view text);  // code point by code point: no rule for a final sigma

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// In time linear in the text but for a sort of the marks of each character.
std::string normal_form(std::string_view text, NormalForm form);

// The byte-level alphabet: a printable Latin-1 byte is the character of its own value; the other 68 bytes, ascending,
// are U+0100, U+0101, ...
std::string_view byte_character(unsigned char byte);
void append_byte_characters(std::string& text, std::string_view bytes);
int byte_of_character(char32_t c);  // -1: not in the alphabet

// --- tables (unicode_tables.cpp)
struct CodeRange {
  char32_t first, last;
};
bool contains(std::span<const CodeRange> ranges, char32_t c);  // of ascending ranges
struct CategoryRange {
  char32_t first, last;
  char category[3];  // "Lo"
};
std::span<const CategoryRange> newer_categories();      // of Unicode 16 and not of PCRE2 10.42
std::span<const CodeRange> newer_numerals();            // numeric for Digits, not for \p{N}
std::span<const CodeRange> normal_form_boundaries();    // without combining class or composition: cut text around them
std::span<const CodeRange> compatibility_exceptions();  // without compatibility mapping

}  // namespace braid::models::text
