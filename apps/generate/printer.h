// Generated text on standard output.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/inference/text_stream.h"

namespace braid::apps {

// Prints text as it becomes final. `before` is printed with the first token, so that an error before it is not mixed
// with text. To a terminal control characters go as \xHH (apps/cli/terminal_text.h), to a file or a program as they
// are. mpirun gives its processes a terminal of its own, whatever it writes to: there they also go as they are.
class Printer {
 public:
  Printer(const models::text::Tokenizer& tokenizer, std::vector<std::string> stops, std::string before);

  // The tokens that the text continues.
  void begin(std::span<const int32_t> tokens) { text_.begin(tokens); }
  // false when a stop string is complete; the text before it has then been printed.
  bool push(int32_t token);
  void finish() { show(text_.finish()); }

 private:
  void show(const std::string& more);

  models::TextStream text_;
  std::string before_;
  bool terminal_;
};

}  // namespace braid::apps
