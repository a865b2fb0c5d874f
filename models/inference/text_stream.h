// Incremental decoding of tokens to text.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models {

// Holds back bytes of an incomplete UTF-8 character, and text that may be the beginning of a stop string. The results
// joined are the text of the whole sequence up to the first stop string, which is not included; invalid bytes become
// U+FFFD, and special tokens are skipped.
class TextStream {
 public:
  // The tokenizer must outlive it. Error(setting) for an empty stop string.
  TextStream(const text::Tokenizer& tokenizer, std::vector<std::string> stops);
  // The tokens that the text continues: some tokenizers write the first token of a text without its leading space.
  void begin(std::span<const int32_t> before) { decoder_.begin(before); }
  std::string push(int32_t token);           // the text that is certain now
  std::string finish();                      // the text that was held back; nothing after a stop string
  bool stopped() const { return stopped_; }  // a stop string was seen: further tokens are not part of the text

 private:
  std::string add(const std::string& more, bool last);

  text::StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace braid::models
