// tokenizer.json of a byte-level BPE, with the keys in the order of Hugging Face `tokenizers`.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace braid::models::text {

nlohmann::ordered_json special_token_json(std::string_view content, int64_t id);

struct ByteLevelJson {
  nlohmann::ordered_json added, normalizer, pre_tokenizer, post_processor, decoder;
  nlohmann::ordered_json vocab, merges = nlohmann::ordered_json::array();
  std::optional<bool> ignore_merges = {};  // none: the key is left out

  nlohmann::ordered_json root() const;
};

}  // namespace braid::models::text
