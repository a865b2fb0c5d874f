// The `pre_tokenizer` of a tokenizer.json: ByteLevel, Split, Digits, Metaspace, Whitespace, WhitespaceSplit,
// BertPreTokenizer, Sequence. It cuts a normalised text into words, which the model cuts into tokens.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/normalizer.h"
#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

// Parts of a text. Steps change the ranges, and the text where they insert or replace characters.
struct Words {
  struct Range {
    size_t begin, end;
  };
  std::string_view text;
  std::vector<Range> ranges;    // none empty, ascending
  bool at_input_start = false;  // the first range begins where the whole input begins
  std::string storage;          // of `text`, once a step has changed it

  std::string_view operator[](size_t i) const { return text.substr(ranges[i].begin, ranges[i].end - ranges[i].begin); }
};

class PreTokenizer {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    virtual void apply(Words& words) const = 0;
  };

  PreTokenizer() = default;                       // the whole text is one word
  explicit PreTokenizer(const Section& section);  // null: the whole text is one word. Error(input) for other types
  PreTokenizer(PreTokenizer&&) = default;
  PreTokenizer& operator=(PreTokenizer&&) = default;

  // True when words are bytes: their characters are those of the byte-level alphabet, and words() leaves that
  // replacement to its caller, who may not need it.
  bool byte_level() const { return byte_level_; }
  // The words of a piece of text; at_input_start: the piece begins where the input begins. `words` is reused.
  void words(std::string_view text, bool at_input_start, Words& words) const;
  // Appends the words, in the byte-level alphabet where there is one. Safe in several threads.
  void split(std::string_view text, std::vector<std::string>& words) const;

 private:
  void add(const Section& section);
  void map_bytes();
  std::vector<std::unique_ptr<const Step>> steps_;
  bool byte_level_ = false;
};

// Text to words, as the trainer of a tokenizer needs it: a normalizer and a pre-tokenizer.
class TextPipeline {
 public:
  TextPipeline(const nlohmann::json& normalizer, const nlohmann::json& pre_tokenizer, const std::string& name);
  void split(std::string_view text, std::vector<std::string>& words) const;  // appends; text is valid UTF-8
  const nlohmann::json& normalizer() const { return normalizer_json_; }      // sections of a tokenizer.json
  const nlohmann::json& pre_tokenizer() const { return pre_tokenizer_json_; }

 private:
  nlohmann::json normalizer_json_, pre_tokenizer_json_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
};
// "gpt-neox": NFC, then ByteLevel; "llama-3": the pattern of Llama-3, then ByteLevel. Error(setting) for other names.
TextPipeline text_pipeline(const std::string& name);

}  // namespace braid::models::text
