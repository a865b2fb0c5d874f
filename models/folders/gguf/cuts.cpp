#include "braid/models/folders/gguf/cuts.h"

#include <algorithm>
#include <cstdio>

#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::gguf {

using nlohmann::json;

json nfc() { return {{"type", "NFC"}}; }
json byte_level(bool regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", regex}};
}

namespace {

json sequence(json first, bool regex) {
  return {{"type", "Sequence"}, {"pretokenizers", {std::move(first), byte_level(regex)}}};
}
json split(const std::string& digits) {
  const std::string pattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" + digits +
                              "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

// The parts of a pre-tokenizer that decide where words are cut.
json essence(const json& pre_tokenizer) {
  if (member(pre_tokenizer, "type") == "Sequence") {
    json list = json::array();
    for (const json& part : member(pre_tokenizer, "pretokenizers")) list.push_back(essence(part));
    return list;
  }
  if (member(pre_tokenizer, "type") == "ByteLevel")
    return {{"type", "ByteLevel"},
            {"add_prefix_space", member(pre_tokenizer, "add_prefix_space")},
            {"use_regex", member(pre_tokenizer, "use_regex").is_null() || member(pre_tokenizer, "use_regex") == true}};
  return pre_tokenizer;
}

// Whether two texts can stand in one with characters in common.
bool overlap(std::string_view a, std::string_view b) {
  bool found = a.find(b) != a.npos || b.find(a) != b.npos;
  for (size_t n = 1; !found && n < std::min(a.size(), b.size()); ++n)
    found = a.ends_with(b.substr(0, n)) || b.ends_with(a.substr(0, n));
  return found;
}

// Files are read with one search for all added tokens; a tokenizer.json looks for the normalized ones in what the
// others leave.
void check_one_search(const json& tokens) {
  std::vector<std::string> kinds[2];
  for (const json& token : tokens) kinds[member(token, "normalized") == true].push_back(token.at("content"));
  for (const std::string& a : kinds[0])
    for (const std::string& b : kinds[1])
      if (overlap(a, b))
        reject(str("its added tokens '", detail::preview(a), "' and '", detail::preview(b),
                   "' overlap and only the second is normalized"));
}

}  // namespace

const std::vector<Cut>& cuts() {
  static const std::vector<Cut> list = {
      {{"gpt-2", "gpt2", "olmo", "mpt"}, nullptr, byte_level(true)},
      {{"llama-bpe", "llama3", "llama-v3"}, nullptr, sequence(split("{1,3}"), false), true, true},
      {{"qwen2"}, nfc(), sequence(split(""), false)},
      {{"dbrx"}, nullptr, sequence(split("{1,3}"), false)},
      {{"smollm"}, nullptr, sequence({{"type", "Digits"}, {"individual_digits", true}}, true)},
  };
  return list;
}

void reject(const std::string& what) {
  fail(ErrorKind::setting, "a GGUF file cannot hold this tokenizer: " + what +
                               "; expected byte-level BPE that cuts words as GPT-2, Llama 3, Qwen2 or SmolLM, or "
                               "SentencePiece's BPE as of LLaMA 2");
}

const json& member(const json& object, const char* name) {
  static const json none;
  const auto at = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && at != object.end() ? *at : none;
}

const Cut& cut_of(const json& root) {
  const json &pre = member(root, "pre_tokenizer"), &normalizer = member(root, "normalizer");
  const json& model = member(root, "model");
  const bool ignore_merges = member(model, "ignore_merges") == true;
  if (!normalizer.is_null() && normalizer != nfc()) reject("its normalizer");
  const bool bytes = member(pre, "type") == "ByteLevel" && member(pre, "add_prefix_space") == false;
  if (member(model, "merges").empty() && bytes && !ignore_merges) return cuts()[0];  // no words are joined
  for (const Cut& cut : cuts())
    if (cut.ignore_merges == ignore_merges && essence(cut.pre_tokenizer) == essence(pre)) return cut;
  reject(str("its words are cut in another way (ignore_merges ", ignore_merges ? "true" : "false", ")"));
}

Spaces spaces_of(const json& root) {
  const json &normalizer = member(root, "normalizer"), &pre = member(root, "pre_tokenizer");
  const json prepend = {{"type", "Prepend"}, {"prepend", kSpace}},
             replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  json steps = json::array();
  if (!normalizer.is_null()) steps.push_back(normalizer);
  if (member(normalizer, "type") == "Sequence") steps = member(normalizer, "normalizers");
  const bool uncut = pre.is_null() || (member(pre, "type") == "Split" && member(pre, "invert") != true &&
                                       member(pre, "pattern") == replace["pattern"]);  // no space is left
  if (uncut && steps == json::array({replace})) return {.prefix = false, .note = ""};
  if (uncut && steps == json::array({prepend, replace})) return {.prefix = true, .note = ""};
  if (!steps.empty() || member(pre, "type") != "Metaspace" || member(pre, "replacement") != kSpace ||
      member(pre, "split") != false)
    reject("its normalizer or pre_tokenizer does more than put U+2581 for spaces and before a text");
  const json& scheme = member(pre, "prepend_scheme");
  if (scheme == "never") return {.prefix = false, .note = ""};
  return {.prefix = true,
          .note = str("the file gives other ids for texts that begin with a space or ", kSpace,
                      scheme == "first" ? ", and for any text behind an added token" : ", also behind an added token",
                      ": GGUF puts ", kSpace, " before every text")};
}

void check_expressible(const json& root, bool pieces) {
  const json &model = member(root, "model"), &normalizer = member(root, "normalizer");
  const json none[] = {nullptr, ""};
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (std::ranges::count(none, member(model, key)) == 0) reject(str("its ", key));
  if (pieces && member(model, "ignore_merges") == true) reject("ignore_merges beside byte_fallback");
  for (unsigned byte = 0; byte < 256 && (pieces || !member(model, "unk_token").is_null()); ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof piece, "<0x%02X>", byte);
    const std::string token(pieces ? piece : text::byte_character(static_cast<unsigned char>(byte)));
    if (!member(model, "vocab").contains(token)) reject("it has no token for the byte " + std::to_string(byte));
  }
  for (const json& token : member(root, "added_tokens")) {
    const std::string content = token.at("content");
    // Matched in the text as it is: the same where the normalizer leaves these characters and their neighbours.
    const bool spaces = content.find_first_not_of(' ') == std::string::npos;
    const bool plain = content.find(' ') == std::string::npos && content.find(kSpace) == std::string::npos;
    const bool same = normalizer.is_null() || (pieces ? plain && !spaces_of(root).prefix : spaces);
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
      if (member(token, key) == true && !(same && std::string_view(key) == "normalized"))
        reject(str("its added token '", detail::preview(content), "' has ", key));
  }
  check_one_search(member(root, "added_tokens"));
}

}  // namespace braid::models::gguf
