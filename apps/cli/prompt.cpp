#include "apps/cli/prompt.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "braid/tensor/io/file_system.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

constexpr std::string_view kPlace = "{prompt}";
constexpr int64_t kLongestText = int64_t{1} << 30;

// std::cin takes an error for the end.
void check_standard_input() {
  check(std::ferror(stdin) == 0, ErrorKind::input,
        [] { return "cannot read standard input: " + io::system_message(); });
}

}  // namespace

std::vector<Flag> prompt_flags(const std::string& help) {
  return {{.name = "prompt", .alias = 'p', .value = "TEXT", .help = help},
          {.name = "escape",
           .alias = 'e',
           .help = "read \\n, \\t, \\r, \\0, \\\\, \\\", \\' and \\xHH in texts of flags as these characters"},
          {.name = "parse-specials", .help = "read <|endoftext|> in the prompt as the special token"}};
}

std::string unescape(const std::string& text) {
  static const std::string letters = "ntr0\\\"'", characters("\n\t\r\0\\\"'", 7);
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    const char next = i + 1 < text.size() ? text[i + 1] : 'z';
    const bool byte = next == 'x' && i + 3 < text.size() && digit(text[i + 2]) >= 0 && digit(text[i + 3]) >= 0;
    const size_t letter = letters.find(next);
    check(byte || letter != std::string::npos, ErrorKind::setting, [&] {
      return str("unknown escape '", preview(text.substr(i, 4)), "' at byte ", i, " of '", preview(text),
                 "': expected \\n, \\t, \\r, \\0, \\\\, \\\", \\' or \\xHH; without --escape a backslash is literal");
    });
    result += byte ? static_cast<char>(16 * digit(text[i + 2]) + digit(text[i + 3])) : characters[letter];
    i += byte ? 3 : 1;
  }
  return result;
}

std::string flag_text(const Arguments& arguments, const std::string& text) {
  return arguments.has("escape") ? unescape(text) : text;
}

std::string prompt_text(const Arguments& arguments) {
  const std::string text = arguments.get("prompt");
  return text == "-" ? read_whole_text(text) : flag_text(arguments, text);
}

std::string read_whole_text(const std::string& file) {
  if (file != "-") return io::read_text_file(file, kLongestText);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  check_standard_input();
  return text;
}

std::optional<std::string> read_line() {
  std::string line;
  const bool some = static_cast<bool>(std::getline(std::cin, line));
  check_standard_input();
  if (!some) return std::nullopt;
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::vector<int32_t> encode_prompt(const models::text::Tokenizer& tokenizer, const models::LanguageModel& model,
                                   const std::string& text, bool parse_specials, bool begins) {
  if (!tokenizer.takes_any_bytes() && !valid_utf8(text))
    print_notes({"the text is no UTF-8: bytes that are not are read as U+FFFD"});
  std::vector<int32_t> tokens = tokenizer.encode(text, parse_specials);
  if (begins) {  // with the template's tokens in front of a text, without those behind it
    const std::vector<int32_t> around = tokenizer.with_template(std::vector<int32_t>{-1});
    tokens.insert(tokens.begin(), around.begin(), std::find(around.begin(), around.end(), -1));
  }
  if (tokens.empty()) tokens.push_back(models::text::document_end(tokenizer, "an empty prompt begins behind"));
  for (size_t i = 0; i < tokens.size(); ++i) {
    check(tokens[i] < model.vocab_size(), ErrorKind::input, [&] {
      return str("the tokenizer has ", tokenizer.vocab_size(), " ids, the model ", model.vocab_size(), ": token ", i,
                 " of the prompt has id ", tokens[i], "; use the tokenizer that the model was trained with");
    });
  }
  return tokens;
}

PromptTemplate::PromptTemplate(const std::string& text_or_file) : text_(text_or_file) {
  const bool in_file = text_.find(kPlace) == std::string::npos && io::exists(text_or_file);
  if (in_file) {
    text_ = io::read_text_file(text_or_file, kLongestText);
    if (text_.ends_with('\n')) text_.pop_back();
  }
  check(text_.find(kPlace) != std::string::npos, ErrorKind::setting, [&] {
    return "bad value for --template: expected a text with {prompt}, or a file with one, found " +
           (in_file ? "none in " + text_or_file : "'" + preview(text_or_file) + "'");
  });
}

std::string PromptTemplate::operator()(const std::string& prompt) const {
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text_.find(kPlace, begin)) != std::string::npos; begin = at + kPlace.size())
    result += text_.substr(begin, at - begin) + prompt;
  return result + text_.substr(begin);
}

}  // namespace braid::apps
