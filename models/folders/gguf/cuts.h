// How a text is cut before BPE, by the names of tokenizer.ggml.pre, and what of a tokenizer.json a file can say.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace braid::models::gguf {

inline constexpr const char* kSpace = "\u2581";  // which stands for a space in SentencePiece's tokens

// Words of byte-level BPE, by the names of tokenizer.ggml.pre: the first one is written.
struct Cut {
  std::vector<std::string> names;
  nlohmann::json normalizer, pre_tokenizer;
  bool begins = false;         // with the token of the beginning, where the file does not say
  bool ignore_merges = false;  // a word that is a token is not merged
};
const std::vector<Cut>& cuts();
nlohmann::json nfc();
nlohmann::json byte_level(bool regex);

// Error(setting): a file cannot hold a tokenizer, because of `what`.
[[noreturn]] void reject(const std::string& what);
// A member of a JSON object; null: it is missing.
const nlohmann::json& member(const nlohmann::json& object, const char* name);

// The cut of a tokenizer.json with byte-level BPE. Error(setting): there is none that gives the same words.
const Cut& cut_of(const nlohmann::json& root);
// What one with SentencePiece's BPE does with spaces. Error(setting) where the text is changed or cut in another way
// than that they become kSpace.
struct Spaces {
  bool prefix = false;  // add_space_prefix
  std::string note;     // on texts for which that is another tokenizer, for the user; "": there are none
};
Spaces spaces_of(const nlohmann::json& root);
// Error(setting) for added tokens and settings of BPE that no file can say; pieces: SentencePiece's.
void check_expressible(const nlohmann::json& root, bool pieces);

}  // namespace braid::models::gguf
