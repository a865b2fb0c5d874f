// The normalizer `Precompiled` of a tokenizer.json: SentencePiece's table of replacements, a double array (Aoe 1989) of
// the texts that are replaced, and the replacements, each ended by a NUL.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

class Precompiled {
 public:
  explicit Precompiled(const Section& section);  // precompiled_charsmap, in base 64
  // As the package does it: a grapheme of at most 5 bytes becomes the replacement of its shortest beginning that has
  // one; the characters of others, and of those without one, are replaced by themselves.
  std::string operator()(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;
  std::vector<uint32_t> array_;
  std::string replacements_;
};

}  // namespace braid::models::text
