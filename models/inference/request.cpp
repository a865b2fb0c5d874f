#include "braid/models/inference/request.h"

#include <string>

#include "braid/models/language_model.h"

namespace braid::models {

void check_prompt(const LanguageModel& model, std::span<const int32_t> prompt) {
  check(!prompt.empty(), ErrorKind::setting, "the prompt is empty: at least one token is needed to start from");
  const int64_t longest = model.max_sequence_length();
  check(std::ssize(prompt) <= longest, ErrorKind::setting,
        [&] { return str("the prompt has ", prompt.size(), " tokens, the model's longest sequence is ", longest); });
  for (size_t i = 0; i < prompt.size(); ++i) {
    check(prompt[i] >= 0 && prompt[i] < model.vocab_size(), ErrorKind::input, [&] {
      return str("the token ids of the prompt are not those of the model: expected 0 to ", model.vocab_size() - 1,
                 ", found ", prompt[i], " at position ", i);
    });
  }
}

}  // namespace braid::models
