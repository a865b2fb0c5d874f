// Values as text: Python's str() and repr(), and JSON.
#include <utf8proc.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "braid/models/data/prepare/template/json_text.h"
#include "braid/models/data/prepare/template/value.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

std::string hex_code(const char* format, unsigned value) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// Python shows what is neither space nor visible by its number.
bool printable(char32_t c) {
  if (c == ' ') return true;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

Text quoted(const Text& text) {
  const bool single = text.bytes.find('\'') == std::string::npos || text.bytes.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  Text out(std::string_view(&quote, 1));
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char mark = text.marks[at];
    const char32_t c = next_code_point(text.bytes, at);
    const char* named = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\\' ? "\\\\" : nullptr;
    if (named)
      out.add(named, mark);
    else if (c == static_cast<char32_t>(quote))
      out.add(std::string("\\") + quote, mark);
    else if (printable(c))
      out += text.sub(begin, at - begin);
    else
      out.add(hex_code(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c), mark);
  }
  return out += Text(std::string_view(&quote, 1));
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Context& context) : style_(style), context_(context) {
    if (style_.item.empty()) style_.item = style_.indent < 0 ? ", " : ",";
    if (style_.name.empty()) style_.name = ": ";
  }
  Text text;

  void value(const Value& v, int64_t level) {
    context_.spend(1);
    if (text.size() > Context::max_text) context_.fail("the JSON of a value is too long");
    if (v.is_none()) {
      add("null");
    } else if (const bool* x = v.boolean()) {
      add(*x ? "true" : "false");
    } else if (const int64_t* n = v.integer()) {
      add(std::to_string(*n));
    } else if (const double* real = v.real()) {
      add(std::isnan(*real) ? "NaN" : std::isinf(*real) ? *real < 0 ? "-Infinity" : "Infinity" : python_float(*real));
    } else if (v.text()) {
      string(*v.text());
    } else if (const Items* list = v.items()) {
      each(list->items.size(), level, "[]", [&](size_t i) { value(list->items[i], level + 1); });
    } else if (const Dict* dict = v.dict()) {
      std::vector<std::pair<Text, const Value*>> items;
      for (const auto& [key, item] : dict->items) items.emplace_back(name_of(key), &item);
      if (style_.sorted) std::ranges::stable_sort(items, {}, [](const auto& item) { return item.first.bytes; });
      each(items.size(), level, "{}", [&](size_t i) {
        string(items[i].first);
        add(style_.name);
        value(*items[i].second, level + 1);
      });
    } else {
      context_.fail(
          braid::str("cannot write ", v.kind(), v.missing() ? " (" + v.missing()->what + ")" : "", " as JSON"));
    }
  }

 private:
  // Signs between strings belong to them: a special token is never made of both.
  void add(std::string_view sign) { text.add(sign, kOfMessage); }
  template <class Each>
  void each(size_t count, int64_t level, std::string_view brackets, const Each& write) {
    add(brackets.substr(0, 1));
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) add(style_.item);
      line(level + 1);
      write(i);
    }
    if (count > 0) line(level);
    add(brackets.substr(1));
  }
  void line(int64_t level) {
    if (style_.indent >= 0) add("\n" + std::string(static_cast<size_t>(style_.indent * level), ' '));
  }
  Text name_of(const Value& key) {
    if (key.text()) return *key.text();
    if (key.items() || key.object()) context_.fail(braid::str("the name of a JSON object is ", key.kind()));
    JsonWriter writer(style_, context_);
    writer.value(key, 0);
    return writer.text;
  }
  void string(const Text& s) {
    context_.spend(1 + s.size() / 8);
    add("\"");
    for (size_t at = 0; at < s.size();) {
      const size_t begin = at;
      const char mark = s.marks[at];
      const char32_t c = next_code_point(s.bytes, at);
      constexpr std::string_view escaped = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
      const size_t known = c < 0x80 ? escaped.find(static_cast<char>(c)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        text.add(std::string("\\") + letters[known], mark);
      } else if (c >= 0x20 && (c < 0x7F || !style_.ascii)) {
        text += s.sub(begin, at - begin);
      } else if (c < 0x10000) {
        text.add(hex_code("\\u%04x", c), mark);
      } else {
        const auto high = static_cast<unsigned>((c - 0x10000) >> 10), low = static_cast<unsigned>(c & 0x3FF);
        text.add(hex_code("\\u%04x", 0xD800 + high) + hex_code("\\u%04x", 0xDC00 + low), mark);
      }
    }
    add("\"");
  }
  JsonStyle style_;
  Context& context_;
};

}  // namespace

Text to_json(const Value& value, const JsonStyle& style, Context& context) {
  JsonWriter writer(style, context);
  writer.value(value, 0);
  return std::move(writer.text);
}

Text Context::str(const Value& value) {
  if (value.text()) return *value.text();
  return value.missing() ? Text() : repr(value);
}

Text Context::repr(const Value& value) {
  spend(1);
  if (value.missing()) return Text("Undefined");
  if (value.is_none()) return Text("None");
  if (const bool* x = value.boolean()) return Text(*x ? "True" : "False");
  if (const int64_t* x = value.integer()) return Text(std::to_string(*x));
  if (const double* x = value.real()) return Text(python_float(*x));
  if (const Text* text = value.text()) {
    spend(text->size() / 8);
    return quoted(*text);
  }
  if (value.object()) fail("cannot write a function, a loop or a namespace as text");
  Text out(value.dict() ? "{" : value.items()->tuple ? "(" : "[");
  bool first = true;
  const auto next = [&](const Value& x) {
    if (!std::exchange(first, false)) out += Text(", ");
    const Text part = repr(x);
    spend(part.size());  // it is copied once more at every level
    out += part;
    if (out.size() > max_text) fail("a value is too long as text");
  };
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, item] : dict->items) {
      next(key);
      out += Text(": ");
      out += repr(item);
    }
    return out += Text("}");
  }
  if (const char* view = value.items()->view) out = Text(braid::str(view, "(["));
  for (const Value& item : value.items()->items) next(item);
  if (value.items()->view) return out += Text("])");
  if (!value.items()->tuple) return out += Text("]");
  return out += Text(value.items()->items.size() == 1 ? ",)" : ")");
}

}  // namespace braid::models::text::jinja

namespace braid::models::text {

std::string json_text(const nlohmann::ordered_json& value) {
  jinja::Context context;
  context.name = "JSON";
  return to_json(jinja::Value::of(value), {}, context).bytes;
}

}  // namespace braid::models::text
