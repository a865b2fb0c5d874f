#include "braid/models/data/tokenizers/byte_level_json.h"

namespace braid::models::text {

using nlohmann::ordered_json;

ordered_json special_token_json(std::string_view content, int64_t id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

ordered_json ByteLevelJson::root() const {
  ordered_json model = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", false},
                        {"byte_fallback", false}};
  if (ignore_merges) model["ignore_merges"] = *ignore_merges;
  model["vocab"] = vocab;
  model["merges"] = merges;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer},
          {"post_processor", post_processor},
          {"decoder", decoder},
          {"model", model}};
}

}  // namespace braid::models::text
