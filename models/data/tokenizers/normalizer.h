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
  // An empty text stays empty. Returns the text itself, or a view of `storage`.
  std::string_view operator()(std::string_view text, std::string& storage) const;

 private:
  void add(const Section& section);
  std::vector<std::function<std::string(std::string_view)>> steps_;
};

}  // namespace braid::models::text
