// Generated text on standard output.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/generation/text_stream.h"

namespace braid::apps {

// Prints text as it becomes final. `before` is printed with the first token, so that an error before it is not mixed
// with text.
class Printer {
 public:
  Printer(const models::text::Tokenizer& tokenizer, std::vector<std::string> stops, std::string before)
      : text_(tokenizer, std::move(stops)), before_(std::move(before)) {}

  // The tokens that the text continues.
  void begin(std::span<const int32_t> tokens) { text_.begin(tokens); }
  // false when a stop string is complete; the text before it has then been printed.
  bool push(int32_t token);
  void finish() { show(text_.finish()); }

 private:
  void show(const std::string& more);

  models::TextStream text_;
  std::string before_;
};

}  // namespace braid::apps
