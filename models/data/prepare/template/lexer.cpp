#include "braid/models/data/prepare/template/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "braid/models/data/prepare/template/value.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

using Kind = Token::Kind;

bool name_begins(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : name_(name) {
    if (!detail::valid_utf8(source)) fail("the template is not UTF-8");
    for (size_t i = 0; i < source.size(); ++i) {  // every line end becomes \n
      if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
      source_ += source[i] == '\r' ? '\n' : source[i];
    }
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<Token> read() {
    while (at_ < source_.size()) root();
    add(Kind::end);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    braid::fail(ErrorKind::input, str(name_, ", line ", line_, ": ", message));
  }
  Token& add(Kind kind, std::string text = "") {
    tokens_.push_back({kind, std::move(text), line_});
    return tokens_.back();
  }
  bool ahead(std::string_view text, size_t skip = 0) const {
    return std::string_view(source_).substr(std::min(at_ + skip, source_.size())).starts_with(text);
  }
  void move(size_t count) {
    for (; count > 0; --count) line_ += source_[at_++] == '\n';
  }
  void skip_space() {
    while (at_ < source_.size()) {
      size_t next = at_;
      if (!is_python_space(next_code_point(source_, next))) return;
      move(next - at_);
    }
  }
  // Behind the end of a tag, whose sign says what happens to the white space there.
  void after(char sign, bool block) {
    if (sign == '-') return skip_space();
    if (sign != '+' && block && at_ < source_.size() && source_[at_] == '\n') move(1);
  }
  // The sign before the end of a tag: "-%}", "+%}", "%}"; 0 where there is no such end here.
  char end_here(std::string_view end) const {
    if (ahead(end)) return ' ';
    const bool sign = at_ < source_.size() && (source_[at_] == '-' || (source_[at_] == '+' && end != "}}"));
    return sign && ahead(end, 1) ? source_[at_] : '\0';
  }

  void root() {
    size_t open = at_;
    const auto opens = [&](size_t i) {
      return source_[i] == '{' && i + 1 < source_.size() &&
             std::string_view("%{#").find(source_[i + 1]) != std::string_view::npos;
    };
    while (open < source_.size() && !opens(open)) ++open;
    std::string data = source_.substr(at_, open - at_);
    const size_t whole = data.size();
    if (open == source_.size()) return put_data(std::move(data), whole);
    const char type = source_[open + 1], sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
    if (sign == '-') {
      while (!data.empty()) {
        size_t before = data.size();
        if (!is_python_space(previous_code_point(data, before))) break;
        data.resize(before);
      }
    } else if (sign != '+' && type != '{') {
      const size_t line = data.rfind('\n') + 1;  // 0: none
      const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
      if ((line > 0 || line_starts_) &&
          std::all_of(data.begin() + static_cast<std::ptrdiff_t>(line), data.end(), space))
        data.resize(line);
    }
    put_data(std::move(data), whole);
    line_starts_ = false;
    move(sign == '-' || sign == '+' ? 3 : 2);
    if (type == '#') return comment();
    if (type == '%' && raw()) return;
    tag(type == '{');
  }
  void put_data(std::string data, size_t whole) {
    if (!data.empty()) add(Kind::data, std::move(data));
    move(whole);
  }
  void ends_tag(size_t begin) { line_starts_ = at_ > begin && source_[at_ - 1] == '\n'; }

  void comment() {
    while (at_ < source_.size()) {
      if (const char sign = end_here("#}")) {
        move(sign == ' ' ? 2 : 3);
        after(sign, true);
        return ends_tag(0);
      }
      move(1);
    }
    fail("a comment has no end: expected #}");
  }
  // {% raw %} text {% endraw %}: the text as it is.
  bool raw() {
    size_t at = at_;
    const auto word = [&](std::string_view text) {
      while (at < source_.size() && is_python_space(static_cast<unsigned char>(source_[at]))) ++at;
      if (!std::string_view(source_).substr(at).starts_with(text)) return false;
      at += text.size();
      return true;
    };
    if (!word("raw")) return false;
    const bool strips = word("-%}");
    if (!strips && !word("%}")) return false;
    move(at - at_);
    if (strips) skip_space();
    for (size_t open = at_; (open = source_.find("{%", open)) != std::string::npos; open += 2) {
      at = open + 2;
      const char sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at++] : ' ';
      if (!word("endraw")) continue;
      while (at < source_.size() && is_python_space(static_cast<unsigned char>(source_[at]))) ++at;
      std::string text = source_.substr(at_, open - at_);
      if (sign == '-') text.resize(text.find_last_not_of(" \t\n\v\f\r") + 1);
      const size_t line = text.rfind('\n') + 1;
      if (sign == ' ' && line > 0 && text.find_first_not_of(" \t\v\f\r", line) == std::string::npos) text.resize(line);
      if (!text.empty()) add(Kind::data, text);
      move(at - at_);
      const char end = end_here("%}");
      if (!end) fail("expected %} behind endraw");
      move(end == ' ' ? 2 : 3);
      after(end, true);
      ends_tag(0);
      return true;
    }
    fail("{% raw %} has no {% endraw %}");
  }

  void tag(bool variable) {
    add(variable ? Kind::variable_begin : Kind::block_begin);
    const std::string_view end = variable ? "}}" : "%}";
    std::string open;  // brackets
    for (;;) {
      const size_t begin = at_;
      if (open.empty())
        if (const char sign = end_here(end)) {
          add(variable ? Kind::variable_end : Kind::block_end);
          move(sign == ' ' ? 2 : 3);
          after(sign, !variable);
          return ends_tag(begin);
        }
      if (at_ == source_.size()) fail(str("a tag has no end: expected ", end));
      size_t next = at_;
      if (is_python_space(next_code_point(source_, next))) {
        skip_space();
      } else if (digit(source_[at_])) {
        number();
      } else if (name_begins(source_[at_])) {
        while (next < source_.size() && (name_begins(source_[next]) || digit(source_[next]))) ++next;
        add(Kind::name, source_.substr(at_, next - at_));
        move(next - at_);
      } else if (source_[at_] == '"' || source_[at_] == '\'') {
        string();
      } else {
        sign(open);
      }
    }
  }

  void sign(std::string& open) {
    for (const std::string_view s : {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                     "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","}) {
      if (!ahead(s)) continue;
      if (s == "(" || s == "[" || s == "{") open += s == "(" ? ')' : s == "[" ? ']' : '}';
      if (s == ")" || s == "]" || s == "}") {
        if (open.empty() || open.back() != s[0]) fail(str("unexpected '", s, "'"));
        open.pop_back();
      }
      add(Kind::sign, std::string(s));
      return move(s.size());
    }
    fail("unexpected '" + detail::preview(source_.substr(at_, utf8_length(source_[at_]))) + "' in a tag");
  }

  void number() {
    const std::string_view rest = std::string_view(source_).substr(at_);
    std::string digits;
    size_t n = 0;
    bool real = false;
    const auto run = [&](const auto& fits) {
      for (; n < rest.size() && (fits(rest[n]) || (rest[n] == '_' && n + 1 < rest.size() && fits(rest[n + 1]))); ++n)
        if (rest[n] != '_') digits += rest[n];
    };
    int base = 10;
    if (rest.size() > 2 && rest[0] == '0' && std::string_view("xXoObB").find(rest[1]) != std::string_view::npos) {
      base = (rest[1] | 32) == 'x' ? 16 : (rest[1] | 32) == 'o' ? 8 : 2;
      n = 2;
      run([&](char c) {
        return base == 16 ? digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f') : c >= '0' && c < '0' + base;
      });
    } else {
      run(digit);
      if (n + 1 < rest.size() && rest[n] == '.' && digit(rest[n + 1])) {
        real = true, digits += '.', ++n;
        run(digit);
      }
      const size_t sign = n + 1 < rest.size() && (rest[n + 1] == '-' || rest[n + 1] == '+') ? 1 : 0;
      if (n + 1 + sign < rest.size() && (rest[n] | 32) == 'e' && digit(rest[n + 1 + sign])) {
        real = true, digits += rest.substr(n, 1 + sign), n += 1 + sign;
        run(digit);
      }
    }
    Token& token = add(real ? Kind::number : Kind::integer, std::string(rest.substr(0, n)));
    if (real) {
      token.number = std::strtod(digits.c_str(), nullptr);
    } else {
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
      if (end.ec != std::errc()) fail("the integer " + detail::preview(digits) + " is too large: at most 64 bits");
    }
    move(n);
  }

  void string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a string has no end");
    add(Kind::string, unescaped(source_.substr(at_ + 1, end - at_ - 1)));
    move(end + 1 - at_);
  }
  std::string unescaped(const std::string& text) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      constexpr std::string_view names = "abfnrtv\\'\"", values = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t known = names.find(c); known != std::string_view::npos) {
        out += values[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t length = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        out += code_point(text, i + 1, length, 16);
        i += length;
      } else if (c >= '0' && c <= '7') {
        size_t length = 1;
        while (length < 3 && i + length < text.size() && text[i + length] >= '0' && text[i + length] <= '7') ++length;
        out += code_point(text, i, length, 8);
        i += length - 1;
      } else if (c == 'N') {
        fail("names of characters (\\N{...}) are not supported");
      } else if (c != '\n') {  // a line end behind a backslash is none
        out += '\\';
        out += c;
      }
    }
    return out;
  }
  std::string code_point(const std::string& text, size_t begin, size_t length, int base) const {
    uint32_t value = 0;
    const char* first = text.data() + std::min(begin, text.size());
    const char* last = text.data() + std::min(begin + length, text.size());
    const auto end = std::from_chars(first, last, value, base);
    const bool surrogate = value >= 0xD800 && value < 0xE000;
    if (end.ec != std::errc() || end.ptr != first + length || value > 0x10FFFF || surrogate)
      fail("a string has a bad escape: expected the number of a character");
    std::string out;
    append_utf8(out, value);
    return out;
  }

  std::string source_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> read_tokens(std::string_view source, const std::string& name) {
  constexpr size_t max_source = 1 << 20;
  if (source.size() > max_source)
    braid::fail(ErrorKind::input, str(name, ": the template is too long: at most ", max_source, " bytes"));
  return Lexer(source, name).read();
}

}  // namespace braid::models::text::jinja
