// The byte tokenizer as a tokenizer.json: a byte-level BPE without merges. The alphabet gives each byte a printable
// character, and no two characters are ever joined.
#include "braid/models/data/tokenizers/byte_tokenizer.h"

#include "braid/models/data/tokenizers/byte_level_json.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/data/tokenizers/unicode.h"

namespace braid::models::text {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// `value.name` where value is an object that has it; null otherwise.
json member(const json& value, const char* name) {
  return value.is_object() && value.contains(name) ? value.at(name) : json();
}

}  // namespace

std::vector<TokenizerFile> ByteTokenizer::files() const {
  ordered_json added = ordered_json::array();
  for (const int32_t id : {eos_id(), pad_id()}) added.push_back(special_token_json(token_bytes(id), id));
  ordered_json vocab = ordered_json::object();
  for (unsigned byte = 0; byte < 256; ++byte)
    vocab[std::string(byte_character(static_cast<unsigned char>(byte)))] = byte;
  const ordered_json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const ordered_json root =
      ByteLevelJson{.added = added, .pre_tokenizer = level, .decoder = level, .vocab = vocab}.root();
  const ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                               {"eos_token", token_bytes(eos_id())},
                               {"pad_token", token_bytes(pad_id())},
                               {"add_prefix_space", false},
                               {"clean_up_tokenization_spaces", false}};
  return {{"tokenizer.json", root.dump(2) + "\n"}, {"tokenizer_config.json", config.dump(2) + "\n"}};
}

bool is_byte_tokenizer(const json& root) {
  const json model = member(root, "model"), pre = member(root, "pre_tokenizer"), vocab = member(model, "vocab");
  if (member(model, "type") != "BPE" || member(model, "merges") != json::array() || !vocab.is_object() ||
      vocab.size() != 256 || !member(root, "normalizer").is_null() || member(pre, "type") != "ByteLevel" ||
      member(pre, "add_prefix_space") != false)
    return false;
  for (unsigned byte = 0; byte < 256; ++byte)
    if (member(vocab, std::string(byte_character(static_cast<unsigned char>(byte))).c_str()) != byte) return false;
  const ByteTokenizer bytes;
  const json added = member(root, "added_tokens");
  if (!added.is_array() || added.size() != 2 || member(added[0], "id") == member(added[1], "id")) return false;
  for (const json& token : added) {
    const json id = member(token, "id");
    if ((id != bytes.eos_id() && id != bytes.pad_id()) ||
        member(token, "content") != std::string(bytes.token_bytes(id.get<int32_t>())) ||
        member(token, "special") != true)
      return false;
  }
  return true;
}

}  // namespace braid::models::text
