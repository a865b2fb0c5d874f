#include "braid/models/data/prepare/template/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/models/data/tokenizers/unicode.h"

namespace braid::models::text::jinja {
namespace {

int depth_of(const Value& value) {
  if (const Items* list = value.items()) return list->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  return 0;
}

bool may_be_key(const Value& value) {
  if (const Items* list = value.items()) return list->tuple && std::ranges::all_of(list->items, may_be_key);
  return !value.dict() && !value.missing();
}

// a < b for texts in the order of their code points: that of their bytes.
std::strong_ordering order(const Text& a, const Text& b) { return a.bytes.compare(b.bytes) <=> 0; }

}  // namespace

Value Value::of(const nlohmann::ordered_json& json) {
  if (json.is_string()) return string(Text(json.get_ref<const std::string&>(), kOfMessage));
  if (json.is_boolean()) return boolean(json.get<bool>());
  const bool large = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
  if (json.is_number_float() || large) return number(json.get<double>());
  if (json.is_number()) return integer(json.get<int64_t>());
  if (json.is_array()) {
    auto list = std::make_shared<Items>();
    for (const auto& item : json) {
      list->items.push_back(of(item));
      list->depth = std::max(list->depth, 1 + depth_of(list->items.back()));
    }
    return {std::shared_ptr<const Items>(std::move(list))};
  }
  if (json.is_object()) {
    auto dict = std::make_shared<Dict>();
    for (const auto& [key, item] : json.items()) {
      dict->items.emplace_back(string(Text(key, kOfMessage)), of(item));
      dict->depth = std::max(dict->depth, 1 + depth_of(dict->items.back().second));
    }
    return {std::shared_ptr<const Dict>(std::move(dict))};
  }
  return none();
}

double Value::as_double() const {
  if (const bool* x = boolean()) return *x ? 1 : 0;
  if (const int64_t* x = integer()) return static_cast<double>(*x);
  return *real();
}

bool Value::true_in_python() const {
  if (missing() || is_none()) return false;
  if (is_number()) return as_double() != 0;
  if (const Text* x = text()) return x->size() > 0;
  if (const Items* x = items()) return !x->items.empty();
  if (const Dict* x = dict()) return !x->items.empty();
  return true;
}

const char* Value::kind() const {
  constexpr const char* names[] = {"an undefined value", "none",   "a boolean", "an integer", "a number",
                                   "a string",           "a list", "a dict",    "an object"};
  return items() && items()->tuple ? "a tuple" : names[data.index()];
}

void Context::fail(const std::string& message) const {
  braid::fail(ErrorKind::input, braid::str(name, ", line ", line, ": ", message));
}

void Context::spend(size_t steps) {
  steps_ += static_cast<int64_t>(std::min<size_t>(steps, max_steps + 1));
  if (steps_ > max_steps) fail(braid::str("the template takes too long: more than ", max_steps, " steps"));
}

Value Context::string(Text text) {
  spend(1 + text.size() / 8);
  if (text.size() > max_text) fail(braid::str("a text is too long: at most ", max_text, " bytes"));
  return Value::string(std::move(text));
}

Value Context::list(std::vector<Value> items, bool tuple, const char* view) {
  spend(1 + 2 * items.size());
  if (items.size() > max_items) fail(braid::str("a list is too long: at most ", max_items, " items"));
  auto list = std::make_shared<Items>(Items{std::move(items), tuple});
  for (const Value& item : list->items) list->depth = std::max(list->depth, 1 + depth_of(item));
  list->view = view;
  if (list->depth > max_depth) fail(braid::str("lists are nested too deeply: at most ", max_depth, " levels"));
  return {std::shared_ptr<const Items>(std::move(list))};
}

Value Context::dict(std::vector<std::pair<Value, Value>> items) {
  auto dict = std::make_shared<Dict>();
  for (auto& [key, value] : items) {
    if (!may_be_key(key)) fail(braid::str("the key of a dict cannot be ", key.kind()));
    if (const Value* known = find(*dict, key)) {
      const_cast<Value&>(*known) = std::move(value);
      continue;
    }
    dict->items.emplace_back(std::move(key), std::move(value));
  }
  for (const auto& [key, value] : dict->items) dict->depth = std::max(dict->depth, 1 + depth_of(value));
  if (dict->depth > max_depth) fail(braid::str("dicts are nested too deeply: at most ", max_depth, " levels"));
  return {std::shared_ptr<const Dict>(std::move(dict))};
}

bool Context::equal(const Value& a, const Value& b) {
  spend(1);
  if (a.is_number() && b.is_number()) {
    if (a.integer() && b.integer()) return *a.integer() == *b.integer();
    return a.as_double() == b.as_double();
  }
  if (a.data.index() != b.data.index()) return false;
  if (a.text()) {
    spend(a.text()->size() / 64);
    return a.text()->bytes == b.text()->bytes;
  }
  if (a.items())
    return a.items()->tuple == b.items()->tuple &&
           std::ranges::equal(a.items()->items, b.items()->items,
                              [&](const Value& x, const Value& y) { return equal(x, y); });
  if (a.dict()) {
    const auto in_b = [&](const auto& item) {
      const Value* other = find(*b.dict(), item.first);
      return other && equal(item.second, *other);
    };
    return a.dict()->items.size() == b.dict()->items.size() && std::ranges::all_of(a.dict()->items, in_b);
  }
  return a.object() == b.object();  // undefined and none equal themselves
}

bool Context::less(const Value& a, const Value& b) {
  spend(1);
  if (a.integer() && b.integer()) return *a.integer() < *b.integer();
  if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
  if (a.text() && b.text()) return order(*a.text(), *b.text()) < 0;
  if (a.items() && b.items() && a.items()->tuple == b.items()->tuple) {
    const auto &x = a.items()->items, &y = b.items()->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    return x.size() < y.size();
  }
  fail(braid::str("cannot compare ", a.kind(), " with ", b.kind()));
}

const Value* Context::find(const Dict& dict, const Value& key) {
  spend(1 + dict.items.size() / 8);
  const Text* wanted = key.text();
  for (const auto& [known, value] : dict.items)
    if (wanted ? known.text() && known.text()->bytes == wanted->bytes : equal(known, key)) return &value;
  return nullptr;
}

bool Context::contains(const Value& container, const Value& item) {
  if (const Dict* dict = container.dict()) {
    if (!may_be_key(item) && !item.missing()) fail(braid::str("the key of a dict cannot be ", item.kind()));
    return find(*dict, item) != nullptr;
  }
  if (const Text* text = container.text()) {
    if (!item.text()) fail(braid::str("cannot look for ", item.kind(), " in a string"));
    spend(text->size() / 8);
    return text->bytes.find(item.text()->bytes) != std::string::npos;
  }
  if (container.missing()) return false;
  if (!container.items()) fail(braid::str("cannot look for a value in ", container.kind()));
  return std::ranges::any_of(container.items()->items, [&](const Value& x) { return equal(x, item); });
}

std::vector<Value> Context::iterate(const Value& value) {
  std::vector<Value> items;
  if (value.items()) {
    items = value.items()->items;
  } else if (const Dict* dict = value.dict()) {
    for (const auto& [key, item] : dict->items) items.push_back(key);
  } else if (const Text* text = value.text()) {
    const std::vector<size_t> begin = characters(*text, *this);
    if (begin.size() > max_items) fail(braid::str("a list is too long: at most ", max_items, " items"));
    spend(4 * begin.size());
    for (size_t i = 0; i + 1 < begin.size(); ++i)
      items.push_back(Value::string(text->sub(begin[i], begin[i + 1] - begin[i])));
  } else if (!value.missing()) {
    fail(braid::str("cannot iterate over ", value.kind()));
  }
  spend(2 * items.size());
  return items;
}

std::vector<size_t> characters(const Text& text, Context& context) {
  context.spend(text.size() / 4);
  std::vector<size_t> begin;
  for (size_t at = 0; at < text.size(); at += utf8_length(text.bytes[at])) begin.push_back(at);
  begin.push_back(text.size());
  return begin;
}

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[400];
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace braid::models::text::jinja
