// Filters: value | name(arguments).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "braid/models/data/prepare/template/functions.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

constexpr int64_t kNoLimit = -1;

// Python's float() and int() of a text.
std::optional<double> float_of(const Value& value) {
  if (value.is_number()) return value.as_double();
  if (!value.text()) return std::nullopt;
  const std::string_view text = detail::trim(value.text()->bytes);
  double x = 0;
  const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto end = std::from_chars(first, text.data() + text.size(), x);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return x;
}

// A filter with what it was called with.
struct Call {
  std::string_view name;
  const Value& value;
  const Arguments& arguments;
  Context& context;

  Value get(size_t position, std::string_view key, Value fallback = Value::none()) const {
    return arguments.get(position, key, std::move(fallback));
  }
  void limit(size_t most, std::initializer_list<std::string_view> names = {}) const {
    check_arguments(arguments, most, names, str("the filter '", name, "'"), context);
  }
  Text text() const { return context.str(value); }
  std::optional<double> number() const {
    if (value.missing()) fail("cannot read a number: " + value.missing()->what);
    return float_of(value);
  }
  bool flag(size_t position, std::string_view key) const { return get(position, key).true_in_python(); }
  // None of a value that is false.
  std::vector<Value> items() const { return value.true_in_python() ? context.iterate(value) : std::vector<Value>(); }
  [[noreturn]] void fail(const std::string& message) const { context.fail(str("the filter '", name, "' ", message)); }
};

// value.a.b, where parts that are numbers are indices.
Value by_path(const Value& value, const Value& path, Context& context) {
  if (path.is_none()) return value;
  if (!path.text()) return item(value, path, context);
  Value found = value;
  for (const std::string& part : detail::split(path.text()->bytes, '.')) {
    const auto index = detail::parse_int(part);
    found = item(found, index ? Value::integer(*index) : Value::string(part), context);
  }
  return found;
}

Value folded(const Value& value, bool sensitive, Context& context) {
  return value.text() && !sensitive ? context.string(with_case(*value.text(), Case::lower, context)) : value;
}

Value to_json_filter(const Call& call) {
  call.limit(4, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style{.ascii = call.flag(0, "ensure_ascii"), .sorted = call.flag(3, "sort_keys")};
  if (const Value indent = call.get(1, "indent"); !indent.is_none()) {
    style.indent = integer_of(indent, "the indent of tojson", call.context);
    if (style.indent < 0 || style.indent > 64) call.fail("has an indent out of range: expected 0 to 64");
  }
  if (const Value marks = call.get(2, "separators"); !marks.is_none()) {
    const bool pair = marks.items() && marks.items()->items.size() == 2 && marks.items()->items[0].text() &&
                      marks.items()->items[1].text();
    if (!pair) call.fail("has bad separators: expected two strings");
    style.item = marks.items()->items[0].text()->bytes, style.name = marks.items()->items[1].text()->bytes;
    if (style.item.empty() || style.name.empty()) call.fail("has an empty separator");
  }
  return call.context.string(to_json(call.value, style, call.context));
}

Value joined(const Call& call) {
  call.limit(2, {"d", "attribute"});
  const Text between = call.context.str(call.get(0, "d", Value::string("")));
  const Value path = call.get(1, "attribute");
  Text out;
  bool begun = false;
  for (const Value& part : call.context.iterate(call.value)) {
    if (std::exchange(begun, true)) out += between;
    out += call.context.str(by_path(part, path, call.context));
    call.context.spend(1);
    if (out.size() > Context::max_text) call.fail("makes a text that is too long");
  }
  return call.context.string(std::move(out));
}

// select, reject, selectattr, rejectattr
Value chosen(const Call& call) {
  const bool by_attribute = call.name.ends_with("attr"), wanted = call.name.starts_with("select");
  const size_t skip = by_attribute ? 1 : 0;
  const std::vector<Value>& values = call.arguments.values;
  if (values.size() < skip) call.fail("needs the name of an attribute");
  std::string test;
  Arguments rest;
  if (values.size() > skip) {
    if (!values[skip].text() || !is_test(values[skip].text()->bytes))
      call.fail("has a test that is not supported: " + detail::preview(call.context.str(values[skip]).bytes));
    test = values[skip].text()->bytes;
    rest.values.assign(values.begin() + static_cast<std::ptrdiff_t>(skip) + 1, values.end());
  }
  std::vector<Value> items;
  for (const Value& x : call.items()) {
    const Value tested = by_attribute ? by_path(x, values[0], call.context) : x;
    const bool is = test.empty() ? tested.true_in_python() : apply_test(test, tested, rest, call.context);
    if (is == wanted) items.push_back(x);
  }
  return call.context.list(std::move(items));
}

Value mapped(const Call& call) {
  std::vector<Value> items;
  const std::vector<Value>& values = call.arguments.values;
  if (values.empty()) {
    call.limit(0, {"attribute", "default"});
    const Value path = call.get(0, "attribute"), fallback = call.get(1, "default");
    if (path.is_none()) call.fail("needs the name of a filter, or attribute = NAME");
    for (const Value& x : call.items()) {
      const Value found = by_path(x, path, call.context);
      items.push_back(found.missing() && !fallback.is_none() ? fallback : found);
    }
  } else {
    if (!values[0].text() || !is_filter(values[0].text()->bytes))
      call.fail("names a filter that is not supported: " + detail::preview(call.context.str(values[0]).bytes));
    const Arguments rest{{values.begin() + 1, values.end()}, call.arguments.named};
    for (const Value& x : call.items()) items.push_back(apply_filter(values[0].text()->bytes, x, rest, call.context));
  }
  return call.context.list(std::move(items));
}

Value sorted(const Call& call) {
  call.limit(3, {"reverse", "case_sensitive", "attribute"});
  const bool down = call.flag(0, "reverse"), sensitive = call.flag(1, "case_sensitive");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& x : call.context.iterate(call.value))
    keyed.emplace_back(  // a list, since lists of equal values may be compared, whatever those are
        call.context.list({folded(by_path(x, call.get(2, "attribute"), call.context), sensitive, call.context)}), x);
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return down ? call.context.less(b.first, a.first) : call.context.less(a.first, b.first);
  });
  std::vector<Value> items;
  for (auto& [key, x] : keyed) items.push_back(std::move(x));
  return call.context.list(std::move(items));
}

Value sorted_dict(const Call& call) {
  call.limit(3, {"case_sensitive", "by", "reverse"});
  if (!call.value.dict()) call.fail(str("needs a dict, found ", call.value.kind()));
  const bool sensitive = call.flag(0, "case_sensitive"), down = call.flag(2, "reverse");
  const std::string by = call.context.str(call.get(1, "by", Value::string("key"))).bytes;
  if (by != "key" && by != "value") call.fail("sorts by 'key' or 'value'");
  auto items = call.value.dict()->items;
  const auto key = [&](const auto& x) { return folded(by == "key" ? x.first : x.second, sensitive, call.context); };
  std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
    return down ? call.context.less(key(b), key(a)) : call.context.less(key(a), key(b));
  });
  std::vector<Value> pairs;
  for (auto& [k, v] : items) pairs.push_back(call.context.list({k, v}, true));
  return call.context.list(std::move(pairs));
}

Value unique(const Call& call) {
  call.limit(2, {"case_sensitive", "attribute"});
  std::vector<Value> keys, items;
  for (const Value& x : call.context.iterate(call.value)) {
    Value key =
        folded(by_path(x, call.get(1, "attribute"), call.context), call.flag(0, "case_sensitive"), call.context);
    if (std::ranges::any_of(keys, [&](const Value& k) { return call.context.equal(k, key); })) continue;
    keys.push_back(std::move(key)), items.push_back(x);
  }
  return call.context.list(std::move(items));
}

Value to_integer(const Call& call) {
  call.limit(1, {"default"});
  if (call.value.integer()) return call.value;
  if (call.value.text())
    if (const auto x = detail::parse_int(detail::trim(call.value.text()->bytes))) return Value::integer(*x);
  const auto x = call.number();
  if (!x || std::isnan(*x) || std::isinf(*x)) return call.get(0, "default", Value::integer(0));
  if (std::fabs(*x) >= 9.2e18) call.fail("has a result that is too large: at most 64 bits");
  return Value::integer(static_cast<int64_t>(*x));
}

Value indented(const Call& call) {
  call.limit(3, {"width", "first", "blank"});
  if (!call.value.text()) call.fail(str("needs a string, found ", call.value.kind()));
  const Value width = call.get(0, "width", Value::integer(4));
  const int64_t spaces = width.text() ? 0 : std::clamp<int64_t>(integer_of(width, "the width", call.context), 0, 1000);
  const Text space = width.text() ? *width.text() : Text(std::string(static_cast<size_t>(spaces), ' '));
  const Value all = call.context.string(call.text() += Text("\n"));  // so that an empty text has a line
  const bool every = call.flag(2, "blank");
  Text out;
  bool first = true;
  const Value lines = call_method(all, "splitlines", {}, call.context);
  for (const Value& line : lines.items()->items) {
    if (!first) out += Text("\n");
    if (first ? call.flag(1, "first") : every || line.text()->size() > 0) out += space;
    out += *line.text();
    first = false;
    if (out.size() > Context::max_text) call.fail("makes a text that is too long");
  }
  return call.context.string(std::move(out));
}

Value length(const Call& call) {
  call.limit(0);
  const Value& v = call.value;
  if (v.text()) return Value::integer(std::ssize(characters(*v.text(), call.context)) - 1);
  if (!v.items() && !v.dict() && !v.missing()) call.fail(str("needs a string, a list or a dict, found ", v.kind()));
  return Value::integer(v.items() ? std::ssize(v.items()->items) : v.dict() ? std::ssize(v.dict()->items) : 0);
}

Value edge(const Call& call) {
  call.limit(0);
  const std::vector<Value> items = call.context.iterate(call.value);
  if (items.empty()) return {Missing{str("the ", call.name, " item of nothing is undefined")}};
  return call.name == "first" ? items.front() : items.back();
}

Value backwards(const Call& call) {
  call.limit(0);
  if (call.value.text()) return call.context.string(reversed(*call.value.text(), call.context));
  std::vector<Value> items = call.context.iterate(call.value);
  std::ranges::reverse(items);
  return call.context.list(std::move(items));
}

Value changed_case(const Call& call) {
  call.limit(0);
  const Text text = call.text();
  if (call.name == "title") {  // words begin behind spaces, hyphens and opening brackets alone
    Text out;
    size_t begin = 0;
    const auto put = [&](size_t end) {
      out += with_case(text.sub(begin, end - begin), Case::capitalized, call.context);
      begin = end;
    };
    for (size_t at = 0; at < text.size(); ++at)
      if (std::string_view("- \t\n\v\f\r({[<").find(text.bytes[at]) != std::string_view::npos) put(at + 1);
    put(text.size());
    return call.context.string(std::move(out));
  }
  return call.context.string(with_case(text,
                                       call.name == "upper"   ? Case::upper
                                       : call.name == "lower" ? Case::lower
                                                              : Case::capitalized,
                                       call.context));
}

Value otherwise(const Call& call) {
  call.limit(2, {"default_value", "boolean"});
  const bool missing = call.value.missing() || (call.flag(1, "boolean") && !call.value.true_in_python());
  return missing ? call.get(0, "default_value", Value::string("")) : call.value;
}

// string, and safe too: nothing is escaped here.
Value as_text(const Call& call) {
  call.limit(0);
  return call.context.string(call.text());
}

Value as_list(const Call& call) {
  call.limit(0);
  return call.context.list(call.context.iterate(call.value));
}

Value pairs(const Call& call) {
  call.limit(0);
  if (call.value.missing()) return call.context.list({});
  if (!call.value.dict()) call.fail(str("needs a dict, found ", call.value.kind()));
  return call_method(call.value, "items", {}, call.context);
}

Value replaced_text(const Call& call) {
  call.limit(3, {"old", "new", "count"});
  const Value count = call.get(2, "count");
  const Text from = call.context.str(call.get(0, "old", {})), to = call.context.str(call.get(1, "new", {}));
  const int64_t most = count.is_none() ? kNoLimit : integer_of(count, "the count of replace", call.context);
  return call.context.string(replace(call.text(), from, to, most, call.context));
}

struct Filter {
  std::string_view name;
  Value (*apply)(const Call&);
};
constexpr Filter kFilters[] = {
    {"abs",
     [](const Call& call) {
       call.limit(0);
       if (call.value.integer() && *call.value.integer() >= 0) return call.value;
       if (!call.value.is_number()) call.fail(str("needs a number, found ", call.value.kind()));
       if (call.value.real()) return Value::number(std::fabs(*call.value.real()));
       return operate("*", call.value, Value::integer(call.value.as_double() < 0 ? -1 : 1), call.context);
     }},
    {"capitalize", changed_case},
    {"count", length},
    {"d", otherwise},
    {"default", otherwise},
    {"dictsort", sorted_dict},
    {"first", edge},
    {"float",
     [](const Call& call) {
       call.limit(1, {"default"});
       const auto x = call.number();
       return x ? Value::number(*x) : call.get(0, "default", Value::number(0));
     }},
    {"indent", indented},
    {"int", to_integer},
    {"items", pairs},
    {"join", joined},
    {"last", edge},
    {"length", length},
    {"list", as_list},
    {"lower", changed_case},
    {"map", mapped},
    {"reject", chosen},
    {"rejectattr", chosen},
    {"replace", replaced_text},
    {"reverse", backwards},
    {"safe", as_text},
    {"select", chosen},
    {"selectattr", chosen},
    {"sort", sorted},
    {"string", as_text},
    {"title", changed_case},
    {"tojson", to_json_filter},
    {"trim",
     [](const Call& call) {
       call.limit(1, {"chars"});
       return call.context.string(strip(call.text(), call.get(0, "chars"), true, true, call.context));
     }},
    {"unique", unique},
    {"upper", changed_case},
};

const Filter* filter_named(std::string_view name) {
  const auto found = std::ranges::find(kFilters, name, &Filter::name);
  return found == std::end(kFilters) ? nullptr : found;
}

}  // namespace

bool is_filter(std::string_view name) { return filter_named(name) != nullptr; }

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Context& context) {
  context.spend(1);
  return filter_named(name)->apply({name, value, arguments, context});
}

}  // namespace braid::models::text::jinja
