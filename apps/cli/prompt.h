// Prompts of the commands that take text, read and checked before anything is computed or printed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/language_model.h"

namespace braid::apps {

// --prompt, --escape and --parse-specials
std::vector<Flag> prompt_flags(const std::string& help);

// The text with \n, \t, \r, \0, \\, \", \' and \xHH (a byte) in place of these escapes. Error(setting) names any other.
std::string unescape(const std::string& text);
// The value of a flag of text, unescaped with --escape.
std::string flag_text(const Arguments& arguments, const std::string& text);
// --prompt; "-" is all of standard input, as it is.
std::string prompt_text(const Arguments& arguments);
// All of a file, or of standard input for "-". Error(input) when it cannot be read.
std::string read_whole_text(const std::string& file);
// The next line of standard input, without its end; none behind the last one. Error(input) when it cannot be read.
std::optional<std::string> read_line();

// The tokens of a prompt, at least one: a text begins after the end of another. begins: it is the beginning of a text,
// which the tokenizer's template may mark. Error(input) when the tokenizer has ids
// that the model does not have and the prompt needs them.
std::vector<int32_t> encode_prompt(const models::text::Tokenizer& tokenizer, const models::LanguageModel& model,
                                   const std::string& text, bool parse_specials, bool begins = true);

// The text around every prompt: "User: {prompt}\nAssistant:".
class PromptTemplate {
 public:
  PromptTemplate() = default;  // nothing
  // The template itself, which contains {prompt}, or the name of a file that holds one; the file's last line end does
  // not count. Error(setting) when it does not contain {prompt}.
  explicit PromptTemplate(const std::string& text_or_file);
  std::string operator()(const std::string& prompt) const;

 private:
  std::string text_ = "{prompt}";
};

}  // namespace braid::apps
