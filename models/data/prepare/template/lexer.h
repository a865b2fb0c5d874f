// The text of a template as tokens, with trim_blocks and lstrip_blocks as transformers sets them: a line end behind a
// block, and white space before one on its line, are not written.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::models::text::jinja {

struct Token {
  enum class Kind {
    data,
    block_begin,
    block_end,
    variable_begin,
    variable_end,
    name,
    string,
    integer,
    number,
    sign,
    end
  };
  Kind kind = Kind::end;
  std::string text;  // of data, a name, a sign; a string without its quotes and escapes
  int line = 1;
  int64_t integer = 0;
  double number = 0;
};
// `name` of the template is for messages. Error(input) names the line.
std::vector<Token> read_tokens(std::string_view source, const std::string& name);

}  // namespace braid::models::text::jinja
