// tokenizer.json of Hugging Face tokenizers. The byte tokenizer is, in its terms, a byte-level BPE without merges: the
// alphabet gives each byte a printable character, and no two characters are ever joined.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/models/text/tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The published byte-level alphabet: a printable Latin-1 byte is the character of its own value; the other 68 bytes
// take U+0100, U+0101, ... in order.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const unsigned code = printable ? byte : next++;
    std::string utf8;
    if (code < 0x80) {
      utf8 += static_cast<char>(code);
    } else {
      utf8 += static_cast<char>(0xC0 | (code >> 6));
      utf8 += static_cast<char>(0x80 | (code & 0x3F));
    }
    alphabet.push_back(utf8);
  }
  return alphabet;
}

// `value.name` where value is an object that has it; null otherwise.
json member(const json& value, const char* name) {
  return value.is_object() && value.contains(name) ? value.at(name) : json();
}

[[noreturn]] void reject(const std::string& path, const std::string& what, const std::string& found) {
  io::fail_input("unsupported tokenizer", path, -1, what, found,
                 "only the byte tokenizer (byte-level BPE without merges) can be loaded");
}

std::string short_text(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void require(const std::string& path, const json& parent, const char* name, const json& expected) {
  const json found = member(parent, name);
  if (found != expected) reject(path, std::string("\"") + name + "\": " + expected.dump(), short_text(found));
}

}  // namespace

void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder) {
  check(dynamic_cast<const ByteTokenizer*>(&tokenizer) != nullptr, "save_tokenizer",
        [&] { return "no tokenizer.json is defined for the tokenizer '" + tokenizer.name() + "'"; });
  ordered_json added = ordered_json::array();
  for (const int32_t id : {tokenizer.eos_id(), tokenizer.pad_id()})
    added.push_back({{"id", id},
                     {"content", tokenizer.token_bytes(id)},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  ordered_json vocab = ordered_json::object();
  const std::vector<std::string> alphabet = byte_alphabet();
  for (size_t byte = 0; byte < alphabet.size(); ++byte) vocab[alphabet[byte]] = byte;
  const ordered_json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const ordered_json root = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", added},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", level},
                             {"post_processor", nullptr},
                             {"decoder", level},
                             {"model",
                              {{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"vocab", vocab},
                               {"merges", ordered_json::array()}}}};
  const ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                               {"eos_token", tokenizer.token_bytes(tokenizer.eos_id())},
                               {"pad_token", tokenizer.token_bytes(tokenizer.pad_id())},
                               {"add_prefix_space", false},
                               {"clean_up_tokenization_spaces", false}};
  io::write_file((std::filesystem::path(folder) / "tokenizer.json").string(), root.dump(2) + "\n");
  io::write_file((std::filesystem::path(folder) / "tokenizer_config.json").string(), config.dump(2) + "\n");
}

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text, const std::string& path) {
  const json root = io::parse_json(text, path);
  const json model = member(root, "model");
  require(path, model, "type", "BPE");
  const json merges = member(model, "merges");
  if (!merges.is_array()) reject(path, "a list of merges", short_text(merges));
  if (!merges.empty()) reject(path, "no merges", std::to_string(merges.size()) + " of them");
  require(path, root, "normalizer", nullptr);
  const json pre = member(root, "pre_tokenizer");
  require(path, pre, "type", "ByteLevel");
  require(path, pre, "add_prefix_space", false);

  auto bytes = std::make_unique<ByteTokenizer>();
  const json vocab = member(model, "vocab");
  const std::vector<std::string> alphabet = byte_alphabet();
  if (!vocab.is_object() || vocab.size() != alphabet.size())
    reject(path, "a vocabulary of 256 bytes", std::to_string(vocab.is_object() ? vocab.size() : 0) + " entries");
  for (size_t byte = 0; byte < alphabet.size(); ++byte) require(path, vocab, alphabet[byte].c_str(), byte);

  const json added = member(root, "added_tokens");
  if (!added.is_array() || added.size() != 2)
    reject(path, "two added tokens", std::to_string(added.is_array() ? added.size() : 0));
  for (const json& token : added) {
    const json id = member(token, "id");
    if (id != json(bytes->eos_id()) && id != json(bytes->pad_id())) reject(path, "ids 256 and 257", short_text(id));
    require(path, token, "content", std::string(bytes->token_bytes(id.get<int32_t>())));
    require(path, token, "special", true);
  }
  if (member(added[0], "id") == member(added[1], "id")) reject(path, "ids 256 and 257", "one of them twice");
  return bytes;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "tokenizer.json").string();
  return parse_tokenizer(io::read_text_file(path, 64 << 20), path);
}

}  // namespace braid::models::text
