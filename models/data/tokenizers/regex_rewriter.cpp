// From Oniguruma to PCRE2, character by character.
#include <algorithm>
#include <vector>

#include "braid/models/data/tokenizers/regex.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

constexpr std::string_view space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view not_space =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
constexpr std::string_view hex_digits = "0-9A-Fa-f";

std::string code(char32_t c) {
  std::string text = "\\x{";
  constexpr char digits[] = "0123456789ABCDEF";
  bool started = false;
  for (int shift = 20; shift >= 0; shift -= 4) {
    const auto digit = (c >> shift) & 0xF;
    started = started || digit != 0 || shift == 0;
    if (started) text += digits[digit];
  }
  return text + "}";
}

// The members of a general category ("L", "Lu") as they stand inside a class.
std::string category(std::string_view name) {
  std::string members = str("\\p{", name, "}");
  for (const CategoryRange& range : newer_categories())
    if (std::string_view(range.category).starts_with(name)) members += code(range.first) + "-" + code(range.last);
  return members;
}

class Rewriter {
 public:
  Rewriter(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) item();
    return out_;
  }

 private:
  [[noreturn]] void reject(const std::string& what) const {
    fail(ErrorKind::input,
         str("unsupported pattern in ", where_, ": ", what, " in '", detail::preview(in_), "' at byte ", at_));
  }
  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }

  void item() {
    const char c = in_[at_];
    if (c == '(') return group();
    if (c == ')') {
      if (groups_.empty()) reject("a ')' without '('");
      atom_ = groups_.back();
      groups_.pop_back();
      ++at_;
      out_ += ')';
      return;
    }
    if (c == '*' || c == '+' || c == '?') {  // also the '?' and '+' that make a quantifier lazy or possessive
      ++at_;
      out_ += c;
      return;
    }
    if (c == '{' && interval()) return;
    atom_ = out_.size();
    if (c == '[') return char_class();
    if (c == '\\') {
      const std::string members = escape(false);
      out_ += members;
      return;
    }
    if (c == '{' || c == '}' || c == '#' || c == ' ') out_ += '\\';
    const size_t length = utf8_length(c);
    out_ += in_.substr(at_, length);
    at_ += length;
  }

  void group() {
    ++at_;
    groups_.push_back(out_.size());
    if (!take("?")) {
      out_ += "(?:";
      return;
    }
    for (const std::string_view kind : {":", "=", "!", ">", "<=", "<!", "i:", "-i:"})
      if (take(kind)) {
        out_ += str("(?", kind);
        return;
      }
    reject(str("a group '(?", in_.substr(at_, 2), "'"));
  }

  // {n} {n,} {n,m} {,m}; a '+' behind it repeats it, in PCRE2 it would make it possessive. False: a literal brace.
  bool interval() {
    const size_t close = in_.find('}', at_);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = in_.substr(at_ + 1, close - at_ - 1);
    const size_t comma = inside.find(',');
    const auto digits = [](std::string_view text) {
      return text.size() <= 5 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    const std::string_view low = inside.substr(0, comma);
    const std::string_view high = comma == std::string_view::npos ? "" : inside.substr(comma + 1);
    if (!digits(low) || !digits(high) || (low.empty() && high.empty())) return false;
    at_ = close + 1;
    const bool repeated = next_is("+");
    if (next_is("?") && comma == std::string_view::npos) reject("'{n}?'");
    if (repeated) out_.insert(atom_, "(?:");
    out_ += str("{", low.empty() ? "0" : low, inside.substr(low.size()), "}");
    if (repeated) out_ += ")";
    return true;
  }

  // Behind a backslash: a literal or, where it stands for several characters, a class. in_class: without brackets.
  std::string escape(bool in_class) {
    if (++at_ == in_.size()) reject("a '\\' at the end");
    const char c = in_[at_++];
    const auto members = [&](const std::string& inside, bool negated) {
      if (!in_class) return (negated ? "[^" : "[") + inside + "]";
      if (negated) reject(str("the negated class '\\", c, "' inside a class"));
      return inside;
    };
    switch (c) {
      case 's':
        return members(std::string(space), false);
      case 'S':
        return members(std::string(not_space), false);
      case 'd':
      case 'D':
        return members(category("Nd"), c == 'D');
      case 'h':
      case 'H':
        return members(std::string(hex_digits), c == 'H');
      case 'w':
      case 'W':  // letters, marks, letter numbers, decimal digits, connectors and some others of Latin letters and
                 // digits; outside of a class also superscript digits and fractions of Latin 1
        return members(category("L") + category("M") + category("Nd") + category("Nl") + category("Pc") +
                           (in_class ? "" : R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})") +
                           R"(\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})",
                       c == 'W');
      case 'p':
      case 'P':
        return property(c == 'P', members);
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return str("\\", c);
      case 'v':
        return code(0x0B);
      case '0':
        return code(0);
      case 'x':
      case 'u':
        return code(number(c));
      case 'A':
      case 'z':
        if (!in_class) return str("\\", c);
        break;
      default:
        break;
    }
    const bool ascii = static_cast<unsigned char>(c) < 0x80;  // char has no sign on some processors
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || !ascii;
    if (letter) reject(str("the escape '\\", ascii ? c : '?', "'"));
    return str("\\", c);
  }

  // \xH \xHH \x{H...} \uHHHH
  char32_t number(char kind) {
    const bool braces = kind == 'x' && take("{");
    const size_t max_digits = braces ? 6 : kind == 'x' ? 2 : 4;
    char32_t value = 0;
    size_t count = 0;
    for (; count < max_digits && at_ < in_.size(); ++count, ++at_) {
      const char c = in_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (count == 0 || (kind == 'u' && count != 4) || (braces && !take("}")) || value > 0x10FFFF ||
        (value >= 0xD800 && value < 0xE000) || (kind == 'x' && !braces && value >= 0x80))
      reject(str("the code point behind '\\", kind, "'"));
    return value;
  }

  template <typename Members>
  std::string property(bool negated, const Members& members) {
    if (!take("{")) reject("'\\p' without '{'");
    const size_t close = in_.find('}', at_);
    if (close == std::string_view::npos) reject("'\\p{' without '}'");
    std::string_view name = in_.substr(at_, close - at_);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    static constexpr std::string_view categories[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",
                                                      "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
                                                      "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc", "Cf"};
    static constexpr std::string_view scripts[] = {"Arabic", "Armenian", "Bengali",  "Cyrillic", "Devanagari", "Greek",
                                                   "Hangul", "Hebrew",   "Hiragana", "Katakana", "Latin",      "Thai"};
    std::string inside;
    if (std::find(std::begin(categories), std::end(categories), name) != std::end(categories))
      inside = category(name);
    else if (name == "Han")
      inside = R"(\p{sc:Han}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
    else if (std::find(std::begin(scripts), std::end(scripts), name) != std::end(scripts))
      inside = str("\\p{sc:", name, "}");
    else
      reject("the property '" + detail::preview(name) + "'");
    at_ = close + 1;
    return members(inside, negated);
  }

  void char_class() {
    ++at_;
    out_ += '[';
    if (take("^")) out_ += '^';
    for (bool first = true;; first = false) {
      if (at_ >= in_.size()) reject("a class without ']'");
      if (next_is("&&")) reject("'&&' in a class");
      if (in_[at_] == ']' && !first) break;
      if (in_[at_] == '[') {
        if (take("[:space:]"))
          out_ += space;
        else if (take("[:digit:]"))
          out_ += category("Nd");
        else
          reject("'[' inside a class");
      } else if (in_[at_] == '\\') {
        out_ += escape(true);
      } else {
        if (in_[at_] == ']') out_ += '\\';
        const size_t length = utf8_length(in_[at_]);
        out_ += in_.substr(at_, length);
        at_ += length;
      }
    }
    ++at_;
    out_ += ']';
  }

  std::string_view in_;
  const std::string& where_;
  size_t at_ = 0, atom_ = 0;
  std::string out_;
  std::vector<size_t> groups_;
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern, const std::string& where) { return Rewriter(pattern, where).run(); }

}  // namespace braid::models::text
