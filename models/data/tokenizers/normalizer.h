// The `normalizer` of a tokenizer.json: NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, StripAccents, Lowercase,
// BertNormalizer, Precompiled, Sequence.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

class Normalizer {
 public:
  Normalizer() = default;                       // changes nothing
  explicit Normalizer(const Section& section);  // null: changes nothing. Error(input) for other types

  bool empty() const { return steps_.empty(); }
  // An empty text stays empty. Returns the text itself, or a view of `storage`. keeps_begin becomes false where the
  // first character is left out and not replaced.
  std::string_view operator()(std::string_view text, std::string& storage, bool* keeps_begin = nullptr) const;

 private:
  struct Step {
    std::function<std::string(std::string_view)> change;
    std::function<bool(std::string_view)> drops_begin = {};  // none: never
  };
  void add(const Section& section);
  std::vector<Step> steps_;
};

}  // namespace braid::models::text
