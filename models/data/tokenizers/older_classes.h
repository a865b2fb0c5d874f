// Classes of characters for BERT and ALBERT as the package knows them: those of utf8proc less the characters that the
// package's older tables lack.
#pragma once

namespace braid::models::text {

bool is_mark(char32_t c);             // M, which StripAccents removes
bool is_nonspacing_mark(char32_t c);  // Mn, which BertNormalizer removes
bool is_punctuation(char32_t c);      // P, and what ASCII has beside letters, digits, blanks and control characters
bool is_control(char32_t c);          // Cc, Cf, Co, but tab and line ends, which BertNormalizer removes

}  // namespace braid::models::text
