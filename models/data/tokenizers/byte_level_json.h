// tokenizer.json with the keys in the order of Hugging Face `tokenizers`, and that of a byte-level BPE.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace braid::models::text {

nlohmann::ordered_json special_token_json(std::string_view content, int64_t id, bool special = true);

template <class Json>
Json tokenizer_json(const Json& added, const Json& normalizer, const Json& pre_tokenizer, const Json& post_processor,
                    const Json& decoder, Json model) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer},
          {"post_processor", post_processor},
          {"decoder", decoder},
          {"model", std::move(model)}};
}

struct ByteLevelJson {
  nlohmann::ordered_json added, normalizer, pre_tokenizer, post_processor, decoder;
  nlohmann::ordered_json vocab, merges = nlohmann::ordered_json::array();
  std::optional<bool> ignore_merges = {};  // none: the key is left out

  nlohmann::ordered_json root() const;
};

}  // namespace braid::models::text
