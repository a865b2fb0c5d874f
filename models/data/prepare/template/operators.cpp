// Attributes, items, slices, and the operators of numbers, strings and lists.
#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/models/data/prepare/template/functions.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

std::string named(const Value& value) { return value.missing() ? value.missing()->what : value.kind(); }

Value absent(const Value& value, const std::string& name) {
  return {Missing{str(value.kind(), " has no '", detail::preview(name), "'")}};
}

Value loop_attribute(const Object& loop, const std::string& name) {
  const auto at = [](size_t i) { return Value::integer(static_cast<int64_t>(i)); };
  const size_t i = loop.index, n = loop.length;
  if (name == "index") return at(i + 1);
  if (name == "index0") return at(i);
  if (name == "revindex") return at(n - i);
  if (name == "revindex0") return at(n - i - 1);
  if (name == "length") return at(n);
  if (name == "depth") return at(1);  // of recursive loops alone it grows
  if (name == "depth0") return at(0);
  if (name == "first") return Value::boolean(i == 0);
  if (name == "last") return Value::boolean(i + 1 == n);
  if (name == "previtem" && i > 0 && i <= loop.items.size()) return loop.items[i - 1];
  if (name == "nextitem" && i + 1 < loop.items.size()) return loop.items[i + 1];
  return {Missing{"loop." + detail::preview(name) + " is undefined"}};
}

Value integer_result(std::string_view name, int64_t a, int64_t b, Context& context) {
  int64_t result = 0;
  bool over = false;
  if (name == "+") over = __builtin_add_overflow(a, b, &result);
  if (name == "-") over = __builtin_sub_overflow(a, b, &result);
  if (name == "*") over = __builtin_mul_overflow(a, b, &result);
  if (name == "//" || name == "%") {
    if (b == 0) context.fail("division by zero");
    over = a == std::numeric_limits<int64_t>::min() && b == -1;
    if (!over) {
      const int64_t rest = a % b, shift = rest != 0 && (rest < 0) != (b < 0) ? 1 : 0;
      result = name == "%" ? rest + shift * b : a / b - shift;
    }
    if (over && name == "%") return Value::integer(0);
  }
  if (name == "**") {
    result = 1;
    for (int64_t left = b, power = a; left > 0 && !over; left /= 2) {
      if (left % 2 == 1) over = __builtin_mul_overflow(result, power, &result);
      if (left > 1) over = __builtin_mul_overflow(power, power, &power) || over;
    }
  }
  if (over) context.fail(str("the result of ", a, " ", name, " ", b, " is too large: at most 64 bits"));
  return Value::integer(result);
}

Value number_result(std::string_view name, const Value& a, const Value& b, Context& context) {
  const auto whole = [](const Value& v) { return v.integer() ? *v.integer() : static_cast<int64_t>(*v.boolean()); };
  if (!a.real() && !b.real() && name != "/" && !(name == "**" && whole(b) < 0))
    return integer_result(name, whole(a), whole(b), context);
  const double x = a.as_double(), y = b.as_double();
  if (name == "+") return Value::number(x + y);
  if (name == "-") return Value::number(x - y);
  if (name == "*") return Value::number(x * y);
  if (name == "**") {
    if ((x == 0 && y < 0) || (x < 0 && y != std::floor(y))) context.fail("the result of ** is no number");
    return Value::number(std::pow(x, y));
  }
  if (y == 0) context.fail("division by zero");
  if (name == "/") return Value::number(x / y);
  double rest = std::fmod(x, y);
  if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
  if (rest == 0) rest = std::copysign(0.0, y);
  if (name == "%") return Value::number(rest);
  const double quotient = (x - rest) / y, floored = std::floor(quotient);
  return Value::number(quotient - floored > 0.5 ? floored + 1 : floored);
}

Value repeated(const Value& value, int64_t count, Context& context) {
  const auto n = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (const Text* text = value.text()) {
    if (n > 0 && text->size() > Context::max_text / n) context.fail("a text is too long");
    Text out;
    for (size_t i = 0; i < n && text->size() > 0; ++i) out += *text;
    return context.string(std::move(out));
  }
  const auto& list = value.items()->items;
  if (n > 0 && list.size() > Context::max_items / n) context.fail("a list is too long");
  std::vector<Value> items;
  for (size_t i = 0; i < n && !list.empty(); ++i) items.insert(items.end(), list.begin(), list.end());
  return context.list(std::move(items), value.items()->tuple);
}

}  // namespace

Value Arguments::get(size_t position, std::string_view name, Value fallback) const {
  if (position < values.size()) return values[position];
  for (const auto& [key, value] : named)
    if (key == name) return value;
  return fallback;
}

void check_arguments(const Arguments& arguments, size_t most, std::initializer_list<std::string_view> names,
                     const std::string& what, Context& context) {
  if (arguments.values.size() > most)
    context.fail(str(what, " has at most ", most, " arguments here, found ", arguments.values.size()));
  for (const auto& [name, value] : arguments.named)
    if (std::ranges::count(names, name) == 0)
      context.fail(str(what, " has no argument '", detail::preview(name), "' here"));
}

Value attribute(const Value& value, const std::string& name, Context& context) {
  context.spend(1);
  if (value.missing()) context.fail(str("cannot read '", detail::preview(name), "': ", value.missing()->what));
  if (Object* object = value.object()) {
    if (object->kind == Object::Kind::loop) return loop_attribute(*object, name);
    const auto found = object->fields.find(name);
    return found == object->fields.end() ? absent(value, name) : found->second;
  }
  if (value.dict() && !is_method(value, name))
    if (const Value* found = context.find(*value.dict(), Value::string(name))) return *found;
  return absent(value, name);
}

Value item(const Value& value, const Value& key, Context& context) {
  context.spend(1);
  if (value.missing()) context.fail(str("cannot read an item: ", value.missing()->what));
  if (value.dict()) {
    if (const Value* found = context.find(*value.dict(), key)) return *found;
    return absent(value, key.text() ? key.text()->bytes : "such a key");
  }
  if (value.object() && key.text()) return attribute(value, key.text()->bytes, context);
  if (!key.integer() && !key.boolean()) return absent(value, key.text() ? key.text()->bytes : "such an item");
  const int64_t i = key.integer() ? *key.integer() : *key.boolean();
  if (const Items* list = value.items()) {
    const int64_t n = std::ssize(list->items), at = i < 0 ? i + n : i;
    if (at >= 0 && at < n) return list->items[static_cast<size_t>(at)];
  } else if (const Text* text = value.text()) {
    const std::vector<size_t> begin = characters(*text, context);
    const int64_t n = std::ssize(begin) - 1, at = i < 0 ? i + n : i;
    if (at >= 0 && at < n) {
      const size_t first = begin[static_cast<size_t>(at)];
      return context.string(text->sub(first, begin[static_cast<size_t>(at) + 1] - first));
    }
  }
  return absent(value, "item " + std::to_string(i));
}

Value slice(const Value& value, const Value& begin, const Value& end, const Value& step, Context& context) {
  if (value.missing()) context.fail(str("cannot read a slice: ", value.missing()->what));
  if (!value.items() && !value.text()) context.fail(str("cannot read a slice of ", value.kind()));
  std::vector<size_t> characters_at;
  if (value.text()) characters_at = characters(*value.text(), context);
  const int64_t n = value.text() ? std::ssize(characters_at) - 1 : std::ssize(value.items()->items);
  const int64_t by = step.is_none() ? 1 : integer_of(step, "the step of a slice", context);
  if (by == 0) context.fail("the step of a slice is 0");
  const auto bound = [&](const Value& v, int64_t fallback) {
    if (v.is_none()) return fallback;
    int64_t at = integer_of(v, "the bound of a slice", context);
    if (at < 0) at += n;  // cannot overflow: n is not negative
    return by > 0 ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
  };
  const int64_t first = bound(begin, by > 0 ? 0 : n - 1), last = bound(end, by > 0 ? n : -1);
  const int64_t count = by > 0 ? (last > first ? (last - first - 1) / by + 1 : 0)
                               : (first > last ? (first - last - 1) / (by < -n - 1 ? n + 1 : -by) + 1 : 0);
  context.spend(static_cast<size_t>(count));
  Text text;
  std::vector<Value> items;
  int64_t at = first;
  for (int64_t i = 0; i < count; ++i) {
    const auto here = static_cast<size_t>(at);
    if (value.text())
      text += value.text()->sub(characters_at[here], characters_at[here + 1] - characters_at[here]);
    else
      items.push_back(value.items()->items[here]);
    if (i + 1 < count) at += by;
  }
  return value.text() ? context.string(std::move(text)) : context.list(std::move(items), value.items()->tuple);
}

Value operate(std::string_view name, const Value& a, const Value& b, Context& context) {
  context.spend(1);
  if (name == "~") {
    Text out = context.str(a);
    out += context.str(b);
    return context.string(std::move(out));
  }
  if (a.is_number() && b.is_number()) return number_result(name, a, b, context);
  if (name == "+" && a.text() && b.text()) {
    Text out = *a.text();
    out += *b.text();
    return context.string(std::move(out));
  }
  if (name == "+" && a.items() && b.items() && a.items()->tuple == b.items()->tuple) {
    std::vector<Value> items = a.items()->items;
    items.insert(items.end(), b.items()->items.begin(), b.items()->items.end());
    return context.list(std::move(items), a.items()->tuple);
  }
  const auto sequence = [](const Value& v) { return v.text() || v.items(); };
  if (name == "*" && sequence(a) && b.is_number() && !b.real()) return repeated(a, integer_of(b, "", context), context);
  if (name == "*" && sequence(b) && a.is_number() && !a.real()) return repeated(b, integer_of(a, "", context), context);
  if (name == "%" && a.text()) context.fail("formatting with % is not supported");
  context.fail(str("cannot compute ", a.kind(), " ", name, " ", b.kind(),
                   a.missing() || b.missing() ? ": " + named(a.missing() ? a : b) : ""));
}

}  // namespace braid::models::text::jinja
