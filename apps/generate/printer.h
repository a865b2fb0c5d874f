// Generated text on standard output.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "braid/models/text/tokenizer.h"

namespace braid::apps {

// Prints text as it becomes final: text that may still become a stop string is held back. `before` is printed with the
// first token, so that an error before it is not mixed with text.
class Printer {
 public:
  Printer(const models::text::Tokenizer& tokenizer, std::vector<std::string> stops, std::string before)
      : decoder_(tokenizer), stops_(std::move(stops)), before_(std::move(before)) {}

  // The tokens that the text continues.
  void begin(std::span<const int32_t> tokens) { decoder_.begin(tokens); }
  // false when a stop string is complete; the text before it has then been printed.
  bool push(int32_t token) { return show(decoder_.push(token), false); }
  void finish() { show(decoder_.finish(), true); }

 private:
  bool show(const std::string& more, bool last);

  models::text::StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string before_, held_;
};

}  // namespace braid::apps
