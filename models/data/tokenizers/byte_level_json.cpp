#include "braid/models/data/tokenizers/byte_level_json.h"

namespace braid::models::text {

using nlohmann::ordered_json;

ordered_json special_token_json(std::string_view content, int64_t id, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
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
  return tokenizer_json(added, normalizer, pre_tokenizer, post_processor, decoder, std::move(model));
}

}  // namespace braid::models::text
