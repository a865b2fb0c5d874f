// Tests: value is name(argument).
#include <algorithm>

#include "braid/models/data/prepare/template/functions.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

struct Test {
  std::string_view name;
  size_t arguments;
  bool (*apply)(const Value& value, const Value& other, Context& context);
};
bool same(const Value& a, const Value& b, Context& context) { return context.equal(a, b); }
bool differ(const Value& a, const Value& b, Context& context) { return !context.equal(a, b); }
bool below(const Value& a, const Value& b, Context& context) { return context.less(a, b); }
bool above(const Value& a, const Value& b, Context& context) { return context.less(b, a); }
bool at_most(const Value& a, const Value& b, Context& context) { return context.less(a, b) || context.equal(a, b); }
bool at_least(const Value& a, const Value& b, Context& context) { return context.less(b, a) || context.equal(a, b); }
bool remainder_is(const Value& a, const Value& b, int64_t rest, Context& context) {
  return context.equal(operate("%", a, b, context), Value::integer(rest));
}
bool has_items(const Value& a, const Value&, Context&) { return a.text() || a.items() || a.dict() || a.missing(); }
constexpr Test kTests[] = {
    {"!=", 1, differ},
    {"<", 1, below},
    {"<=", 1, at_most},
    {"==", 1, same},
    {">", 1, above},
    {">=", 1, at_least},
    {"boolean", 0, [](const Value& a, const Value&, Context&) { return a.boolean() != nullptr; }},
    {"callable", 0,
     [](const Value& a, const Value&, Context&) {
       return a.missing() || (a.object() && a.object()->kind >= Object::Kind::macro);
     }},
    {"defined", 0, [](const Value& a, const Value&, Context&) { return !a.missing(); }},
    {"divisibleby", 1, [](const Value& a, const Value& b, Context& c) { return remainder_is(a, b, 0, c); }},
    {"eq", 1, same},
    {"equalto", 1, same},
    {"even", 0, [](const Value& a, const Value&, Context& c) { return remainder_is(a, Value::integer(2), 0, c); }},
    {"false", 0, [](const Value& a, const Value&, Context&) { return a.boolean() && !*a.boolean(); }},
    {"float", 0, [](const Value& a, const Value&, Context&) { return a.real() != nullptr; }},
    {"ge", 1, at_least},
    {"greaterthan", 1, above},
    {"gt", 1, above},
    {"in", 1, [](const Value& a, const Value& b, Context& c) { return c.contains(b, a); }},
    {"integer", 0, [](const Value& a, const Value&, Context&) { return a.integer() != nullptr; }},
    {"iterable", 0, has_items},
    {"le", 1, at_most},
    {"lessthan", 1, below},
    {"lt", 1, below},
    {"mapping", 0, [](const Value& a, const Value&, Context&) { return a.dict() != nullptr; }},
    {"ne", 1, differ},
    {"none", 0, [](const Value& a, const Value&, Context&) { return a.is_none(); }},
    {"number", 0, [](const Value& a, const Value&, Context&) { return a.is_number(); }},
    {"odd", 0, [](const Value& a, const Value&, Context& c) { return remainder_is(a, Value::integer(2), 1, c); }},
    {"sequence", 0, has_items},
    {"string", 0, [](const Value& a, const Value&, Context&) { return a.text() != nullptr; }},
    {"true", 0, [](const Value& a, const Value&, Context&) { return a.boolean() && *a.boolean(); }},
    {"undefined", 0, [](const Value& a, const Value&, Context&) { return a.missing() != nullptr; }},
};

const Test* test_named(std::string_view name) {
  const auto found = std::ranges::find(kTests, name, &Test::name);
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace

bool is_test(std::string_view name) { return test_named(name) != nullptr; }

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Context& context) {
  context.spend(1);
  const Test& test = *test_named(name);
  if (arguments.values.size() != test.arguments || !arguments.named.empty())
    context.fail(str("the test '", name, "' takes ", test.arguments, " arguments, found ", arguments.values.size()));
  return test.apply(value, arguments.values.empty() ? value : arguments.values[0], context);
}

}  // namespace braid::models::text::jinja
