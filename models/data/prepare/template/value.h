// Values of a chat template: those of Python that Jinja has, never changed once made (but for namespaces). Text knows
// of each byte whether it came from a message, through everything that filters do to it.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "braid/tensor/error.h"

namespace braid::models::text::jinja {

// Marks of bytes: kOfMessage, and above it the number of the {% generation %} block, modulo 127, plus 1.
inline constexpr unsigned char kOfMessage = 1;

struct Text {
  std::string bytes, marks;  // of equal length

  Text() = default;
  explicit Text(std::string_view text, unsigned char mark = 0)
      : bytes(text), marks(text.size(), static_cast<char>(mark)) {}
  size_t size() const { return bytes.size(); }
  Text sub(size_t begin, size_t count = std::string::npos) const {
    Text part;
    part.bytes = bytes.substr(begin, count), part.marks = marks.substr(begin, count);
    return part;
  }
  Text& operator+=(const Text& other) {
    bytes += other.bytes, marks += other.marks;
    return *this;
  }
  // Appends the text that stands for byte `at` of another one.
  void add(std::string_view text, char mark) { bytes += text, marks.append(text.size(), mark); }
};

struct Value;
struct Object;
struct Items {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
  const char* view = nullptr;  // of a dict, as Python writes it: "dict_keys"
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in the order of their insertion
  int depth = 1;
};
struct Missing {
  std::string what;  // for messages: "'x' is undefined"
};

struct Value {
  std::variant<Missing, std::nullptr_t, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const Items>, std::shared_ptr<const Dict>, Object*>
      data;

  static Value none() { return {nullptr}; }
  static Value boolean(bool x) { return {x}; }
  static Value integer(int64_t x) { return {x}; }
  static Value number(double x) { return {x}; }
  static Value string(Text x) { return {std::make_shared<const Text>(std::move(x))}; }
  static Value string(std::string_view x) { return string(Text(x)); }
  // JSON from outside: its strings are of messages. Depth and size are the reader's.
  static Value of(const nlohmann::ordered_json& json);

  const Missing* missing() const { return std::get_if<Missing>(&data); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(data); }
  const bool* boolean() const { return std::get_if<bool>(&data); }
  bool is_number() const { return boolean() || std::get_if<int64_t>(&data) || std::get_if<double>(&data); }
  double as_double() const;  // of a number
  const int64_t* integer() const { return std::get_if<int64_t>(&data); }
  const double* real() const { return std::get_if<double>(&data); }
  const Text* text() const { return held<Text>(); }
  const Items* items() const { return held<Items>(); }
  const Dict* dict() const { return held<Dict>(); }
  Object* object() const {
    Object* const* found = std::get_if<Object*>(&data);
    return found ? *found : nullptr;
  }
  bool true_in_python() const;
  const char* kind() const;  // for messages: "a string"

 private:
  template <class T>
  const T* held() const {
    const auto* found = std::get_if<std::shared_ptr<const T>>(&data);
    return found ? found->get() : nullptr;
  }
};

// raise_exception('...') was called: the template rejects its messages.
class Raised : public Error {
 public:
  using Error::Error;
};

// What a template may use: it comes from outside. Every operation spends steps, and errors name the line.
class Context {
 public:
  static constexpr int64_t max_steps = 10000000;  // about a second
  static constexpr size_t max_text = 64 << 20, max_items = 1 << 20;
  static constexpr int max_depth = 100;

  std::string name;  // of the template, for messages
  int line = 1;

  [[noreturn]] void fail(const std::string& message) const;
  void spend(size_t steps);
  Value string(Text text);
  Value string(std::string_view text, unsigned char mark = 0) { return string(Text(text, mark)); }
  Value list(std::vector<Value> items, bool tuple = false, const char* view = nullptr);
  // The last of equal keys counts, at the position of the first.
  Value dict(std::vector<std::pair<Value, Value>> items);

  bool equal(const Value& a, const Value& b);
  bool less(const Value& a, const Value& b);
  const Value* find(const Dict& dict, const Value& key);
  bool contains(const Value& container, const Value& item);
  // Items of a list, keys of a dict, characters of a string; none of an undefined value.
  std::vector<Value> iterate(const Value& value);
  Text str(const Value& value);   // as Python's str(); empty for an undefined value
  Text repr(const Value& value);  // as Python's repr()

 private:
  int64_t steps_ = 0;
};

// As Python's json.dumps writes it.
struct JsonStyle {
  int64_t indent = -1;     // spaces of a level; negative: one line
  std::string item, name;  // separators; empty: "," (indented) or ", ", and ": "
  bool ascii = false, sorted = false;
};
Text to_json(const Value& value, const JsonStyle& style, Context& context);
std::string python_float(double value);  // as Python's repr

// Begin of every character, and the size of the text.
std::vector<size_t> characters(const Text& text, Context& context);
bool is_python_space(char32_t c);  // str.isspace()

}  // namespace braid::models::text::jinja
