#include <algorithm>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/npy_format.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {
namespace {

constexpr const char* npy_damaged = "the file is damaged or of another kind";

struct NpyType {
  std::string_view code;  // kind and bytes of an element
  DType dtype;
};
constexpr NpyType npy_types[] = {{"f8", DType::f64}, {"f4", DType::f32}, {"f2", DType::f16}, {"i8", DType::i64},
                                 {"i4", DType::i32}, {"u1", DType::u8},  {"b1", DType::u8}};

// What a type that tensors lack is called: "int16 ('<i2')".
std::string numpy_name(const std::string& descr) {
  std::string_view code = descr;
  if (!code.empty() && std::string_view("<>|=").find(code[0]) != code.npos) code.remove_prefix(1);
  const std::string shown = " ('" + detail::preview(descr) + "')";
  const int64_t bytes = detail::parse_int(code.empty() ? code : code.substr(1)).value_or(0);
  const std::string bits = bytes > 0 && bytes <= 32 ? std::to_string(8 * bytes) : "";
  switch (code.empty() ? '\0' : code[0]) {
    case 'O':
      return "Python objects" + shown;
    case 'S':
    case 'U':
      return "strings" + shown;
    case 'M':
    case 'm':
      return "dates or times" + shown;
    case 'V':
      return "raw bytes" + shown;
    case 'i':
      return str("int", bits, shown);
    case 'u':
      return str("uint", bits, shown);
    case 'f':
      return str("float", bits, shown);
    case 'c':
      return str("complex", bits, shown);
    default:
      return "the type" + shown;
  }
}

// Reads the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: literals only, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path, int64_t first)
      : text_(text), path_(path), first_(first) {}

  NpyHeader parse() {
    expect('{', "a dictionary");
    while (!take('}')) {
      key();
      if (!take(',') && peek() != '}') bad("',' or '}'");
    }
    blanks();
    if (at_ < text_.size()) bad("the end of the header");
    if (seen_ != 7) bad("the keys 'descr', 'fortran_order' and 'shape'");
    finish();
    return header_;
  }

 private:
  [[noreturn]] void bad(const std::string& expected) const {
    const std::string found = at_ < text_.size() ? detail::preview(text_.substr(at_), 20) : "the end of the header";
    fail_input("bad .npy header", path_, first_ + static_cast<int64_t>(at_), expected, found, npy_damaged);
  }
  [[noreturn]] void unsupported(const std::string& found) const {
    fail_input("cannot load the array", path_, -1, "elements of float64, float32, float16, int64, int32, uint8 or bool",
               found, "convert it in NumPy, for example x.astype('float32'), and save that");
  }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* what) {
    if (!take(c)) bad(what);
  }

  std::string quoted(const char* what) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') bad(what);
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos || text_.substr(at_, end - at_).find('\\') != text_.npos) bad(what);
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  void key() {
    blanks();
    const size_t begin = at_;
    const std::string name = quoted("a key in quotes");
    const int bit = name == "descr" ? 1 : name == "fortran_order" ? 2 : name == "shape" ? 4 : 0;
    if (bit == 0 || (seen_ & bit) != 0) {
      at_ = begin;
      bad("each of 'descr', 'fortran_order' and 'shape' once");
    }
    seen_ |= bit;
    expect(':', "':'");
    if (bit == 1)
      descr();
    else if (bit == 2)
      header_.fortran_order = truth();
    else
      shape();
  }

  void descr() {
    if (peek() == '[') unsupported("a structured type");
    const std::string text = quoted("a type in quotes");
    std::string_view code = text;
    const char order = code.empty() ? '\0' : code[0];
    if (order == '<' || order == '>' || order == '|' || order == '=') code.remove_prefix(1);
    const auto* type = std::ranges::find(npy_types, code, &NpyType::code);
    if (type == std::end(npy_types)) unsupported(numpy_name(text));
    header_.dtype = type->dtype;
    header_.is_bool = code == "b1";
    header_.big_endian = order == '>';
  }

  bool truth() {
    peek();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    bad("True or False");
  }

  void shape() {
    expect('(', "a tuple of sizes");
    bool comma = true;  // a tuple of one size has one
    while (peek() != ')') {
      if (!comma) bad("',' or ')'");
      size();
      comma = take(',');
    }
    if (header_.shape.rank() == 1 && !comma) bad("a tuple, such as (3,)");
    expect(')', "')'");
  }

  void size() {
    int64_t n = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text_[at_] - '0', &n))
        bad("a size that fits 63 bits");
    if (at_ == begin) bad("a size of 0 or more");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote it
    if (header_.shape.rank() == Shape::max_rank)
      fail_input("cannot load the array", path_, -1, str("at most ", Shape::max_rank, " dimensions"), "more",
                 "reshape it in NumPy and save that");
    header_.shape.push_back(n);
  }

  void finish() {
    header_.bytes = size_of(header_.dtype);
    bool fits = true, is_empty = false;
    for (const int64_t n : header_.shape) {
      is_empty = is_empty || n == 0;
      if (n > 0) fits = fits && !__builtin_mul_overflow(header_.bytes, n, &header_.bytes);
    }
    if (is_empty) header_.bytes = 0;
    if (!is_empty && (!fits || header_.bytes > INT64_MAX / 2))
      fail_input("bad .npy header", path_, first_, "an array of less than 2^62 bytes", str("the shape ", header_.shape),
                 npy_damaged);
  }

  std::string_view text_;
  const std::string& path_;
  int64_t first_;
  size_t at_ = 0;
  int seen_ = 0;
  NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& path, int64_t first) {
  return HeaderParser(text, path, first).parse();
}

std::string npy_head(DType dtype, const Shape& shape, const char* op) {
  const auto* type = std::ranges::find(npy_types, dtype, &NpyType::dtype);
  check(type != std::end(npy_types), op,
        [&] { return str("NumPy has no type for ", dtype, ": save cast(x, DType::f32)"); });
  std::string text =
      str("{'descr': '", dtype == DType::u8 ? "|" : "<", type->code,
          "', 'fortran_order': False, 'shape': ", shape.rank() == 1 ? str("(", shape[0], ",)") : str(shape), ", }");
  constexpr size_t before = 10, alignment = 64;  // magic number, version and length; where the data may begin
  const size_t total = (before + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.append(total - before - text.size() - 1, ' ').append(1, '\n');
  const auto length = static_cast<uint16_t>(text.size());
  std::string head("\x93NUMPY\x01\x00", 8);
  head.append(1, static_cast<char>(length & 0xff)).append(1, static_cast<char>(length >> 8));
  return head + text;
}

}  // namespace braid::io
