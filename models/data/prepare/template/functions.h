// What templates may call: filters, tests, methods of strings and dicts, attributes and operators, as Jinja and Python
// have them. Whatever is not here is an error that names it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/models/data/prepare/template/value.h"

namespace braid::models::text::jinja {

struct Node;
struct Scope;

// Values that are not copied: they live as long as one rendering.
struct Object {
  enum class Kind { name_space, loop, macro, function, method } kind;
  std::string name = "";                     // of a macro, a function, a method
  std::map<std::string, Value> fields = {};  // of a namespace
  std::vector<Value> items = {};             // of a loop
  size_t index = 0, length = 0;              // likewise
  const Node* macro = nullptr;
  std::shared_ptr<Scope> scope = nullptr;  // in which a macro was defined
  Value self = {};                         // of a method
};

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at a position or of a name; otherwise the fallback.
  Value get(size_t position, std::string_view name, Value fallback = Value::none()) const;
};
// Fails where there are more arguments than `most`, or one whose name is not among the names.
void check_arguments(const Arguments& arguments, size_t most, std::initializer_list<std::string_view> names,
                     const std::string& what, Context& context);

bool is_filter(std::string_view name);
bool is_test(std::string_view name);
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Context& context);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Context& context);

bool is_method(const Value& self, std::string_view name);
Value call_method(const Value& self, std::string_view name, const Arguments& arguments, Context& context);

// Functions that are always there. namespace returns its fields as a dict.
inline constexpr const char* kGlobals[] = {"dict", "namespace", "raise_exception", "range"};
Value call_global(std::string_view name, const Arguments& arguments, Context& context);

// a.name, a[key] and a[begin:end:step]. Undefined where there is none; fails for what is undefined itself.
Value attribute(const Value& value, const std::string& name, Context& context);
Value item(const Value& value, const Value& key, Context& context);
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step, Context& context);
// name: + - * / // % ** ~
Value operate(std::string_view name, const Value& a, const Value& b, Context& context);

// --- of texts, as Python's str has them
Text strip(const Text& text, const Value& characters, bool left, bool right, Context& context);
Text replace(const Text& text, const Text& from, const Text& to, int64_t count, Context& context);
Text reversed(const Text& text, Context& context);
enum class Case { upper, lower, title, capitalized };
Text with_case(const Text& text, Case form, Context& context);
// An integer, of which nothing else may stand in its stead.
int64_t integer_of(const Value& value, const std::string& what, Context& context);

}  // namespace braid::models::text::jinja
