// Methods of strings, lists and dicts.
#include <utf8proc.h>
#include <algorithm>

#include "braid/models/data/prepare/template/functions.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

constexpr std::string_view kStringMethods[] = {
    "capitalize", "count", "endswith",   "find",       "isalnum",      "isalpha",      "isdigit", "islower", "isspace",
    "isupper",    "join",  "lower",      "lstrip",     "removeprefix", "removesuffix", "replace", "rfind",   "rsplit",
    "rstrip",     "split", "splitlines", "startswith", "strip",        "title",        "upper"};
constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values"}, kListMethods[] = {"count", "index"};

// Whether every character is of a class, and there is one.
template <class Fits>
bool all_characters(const Text& text, Context& context, const Fits& fits) {
  context.spend(text.size() / 4);
  for (size_t at = 0; at < text.size();)
    if (!fits(next_code_point(text.bytes, at))) return false;
  return text.size() > 0;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool is_letter(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}
bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

// Some cased character, and none of the other case.
bool one_case(const Text& text, bool upper, Context& context) {
  bool some = false;
  const bool fits = all_characters(text, context, [&](char32_t c) {
    const auto k = category(c);
    some = some || k == (upper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL);
    return k != (upper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU) && k != UTF8PROC_CATEGORY_LT;
  });
  return fits && some;
}

const Text& text_of(const Value& value, std::string_view method, Context& context) {
  if (!value.text()) context.fail(str("the method '", method, "' needs a string, found ", value.kind()));
  return *value.text();
}

// The parts between white space; with a count, the rest behind that many.
std::vector<Value> split_at_space(const Text& text, int64_t count, bool from_right, Context& context) {
  std::vector<std::pair<size_t, size_t>> words;
  bool inside = false;
  context.spend(text.size() / 4);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool space = is_python_space(next_code_point(text.bytes, at));
    if (!space && !inside) words.emplace_back(begin, at);
    if (!space) words.back().second = at;
    inside = !space;
  }
  if (count >= 0 && std::ssize(words) > count) {
    if (from_right) {
      const size_t rest = words.size() - static_cast<size_t>(count);
      words[rest - 1].first = words[0].first;
      words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(rest - 1));
    } else {
      words.resize(static_cast<size_t>(count) + 1);
    }
    // The rest keeps the white space at the outer end of the text.
    if (from_right)
      words[0].first = 0;
    else
      words.back().second = text.size();
  }
  std::vector<Value> parts;
  for (const auto& [begin, end] : words) parts.push_back(context.string(text.sub(begin, end - begin)));
  return parts;
}

std::vector<Value> split_at(const Text& text, const Text& separator, int64_t count, bool from_right, Context& context) {
  if (separator.size() == 0) context.fail("cannot split at an empty string");
  context.spend(1 + text.size() / 8);
  std::vector<Value> parts;
  const std::string &all = text.bytes, &mark = separator.bytes;
  if (from_right) {
    size_t end = all.size();
    for (; count != 0 && end >= mark.size(); --count) {
      const size_t at = all.rfind(mark, end - mark.size());
      if (at == std::string::npos) break;
      parts.push_back(context.string(text.sub(at + mark.size(), end - at - mark.size())));
      end = at;
    }
    parts.push_back(context.string(text.sub(0, end)));
    std::ranges::reverse(parts);
    return parts;
  }
  size_t begin = 0;
  for (size_t at; count != 0 && (at = all.find(mark, begin)) != std::string::npos; --count, begin = at + mark.size())
    parts.push_back(context.string(text.sub(begin, at - begin)));
  parts.push_back(context.string(text.sub(begin)));
  return parts;
}

std::vector<Value> split_lines(const Text& text, bool ends, Context& context) {
  context.spend(text.size() / 4);
  std::vector<Value> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t c = next_code_point(text.bytes, at);
    const bool breaks = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && at < text.size() && text.bytes[at] == '\n') ++at;
    lines.push_back(context.string(text.sub(begin, (ends ? at : end) - begin)));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(context.string(text.sub(begin)));
  return lines;
}

// startswith and endswith take one string or a tuple of them.
bool has_end(const Text& text, const Value& parts, bool front, std::string_view method, Context& context) {
  std::vector<Value> several = {parts};
  if (parts.items() && parts.items()->tuple) several = parts.items()->items;
  return std::ranges::any_of(several, [&](const Value& part) {
    const std::string& p = text_of(part, method, context).bytes;
    context.spend(1 + p.size() / 64);
    return front ? text.bytes.starts_with(p) : text.bytes.ends_with(p);
  });
}

// In characters; -1: none.
int64_t found_at(const Text& text, size_t at, Context& context) {
  if (at == std::string::npos) return -1;
  return std::ssize(characters(text.sub(0, at), context)) - 1;
}

Value call_of_string(const Text& text, std::string_view name, const Arguments& a, Context& context) {
  const auto limit = [&](size_t most, std::initializer_list<std::string_view> names = {}) {
    check_arguments(a, most, names, str("the method '", name, "'"), context);
  };
  const Value first = a.get(0, "");
  const auto one = [&]() -> const Text& {
    limit(1);
    return text_of(first, name, context);
  };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    limit(1);
    return context.string(strip(text, first, name != "rstrip", name != "lstrip", context));
  }
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize") {
    limit(0);
    return context.string(with_case(text,
                                    name == "upper"   ? Case::upper
                                    : name == "lower" ? Case::lower
                                    : name == "title" ? Case::title
                                                      : Case::capitalized,
                                    context));
  }
  if (name == "startswith" || name == "endswith") {
    limit(1);
    return Value::boolean(has_end(text, first, name == "startswith", name, context));
  }
  if (name == "split" || name == "rsplit") {
    limit(2, {"sep", "maxsplit"});
    const Value separator = a.get(0, "sep");
    const int64_t count = integer_of(a.get(1, "maxsplit", Value::integer(-1)), "maxsplit", context);
    const bool right = name == "rsplit";
    return context.list(separator.is_none() ? split_at_space(text, count, right, context)
                                            : split_at(text, text_of(separator, name, context), count, right, context));
  }
  if (name == "splitlines") {
    limit(1, {"keepends"});
    return context.list(split_lines(text, a.get(0, "keepends").true_in_python(), context));
  }
  if (name == "replace") {
    limit(3, {"count"});
    const int64_t count = integer_of(a.get(2, "count", Value::integer(-1)), "count", context);
    const Value to = a.get(1, "");
    return context.string(replace(text, text_of(first, name, context), text_of(to, name, context), count, context));
  }
  if (name == "join") {
    limit(1);
    Text out;
    bool begun = false;
    for (const Value& part : context.iterate(first)) {
      if (std::exchange(begun, true)) out += text;
      out += text_of(part, name, context);
      context.spend(1);
      if (out.size() > Context::max_text) context.fail("a text is too long");
    }
    return context.string(std::move(out));
  }
  context.spend(text.size() / 8);
  if (name == "find") return Value::integer(found_at(text, text.bytes.find(one().bytes), context));
  if (name == "rfind") return Value::integer(found_at(text, text.bytes.rfind(one().bytes), context));
  if (name == "count") {
    const std::string& part = one().bytes;
    if (part.empty()) return Value::integer(std::ssize(characters(text, context)));
    int64_t n = 0;
    for (size_t at = 0; (at = text.bytes.find(part, at)) != std::string::npos; at += part.size()) ++n;
    return Value::integer(n);
  }
  if (name == "removeprefix")
    return context.string(text.bytes.starts_with(one().bytes) ? text.sub(one().size()) : text);
  if (name == "removesuffix")
    return context.string(text.bytes.ends_with(one().bytes) ? text.sub(0, text.size() - one().size()) : text);
  limit(0);
  if (name == "isdigit") return Value::boolean(all_characters(text, context, is_digit));
  if (name == "isalpha") return Value::boolean(all_characters(text, context, is_letter));
  if (name == "isspace") return Value::boolean(all_characters(text, context, is_python_space));
  if (name == "isalnum")
    return Value::boolean(all_characters(text, context, [](char32_t c) { return is_letter(c) || is_digit(c); }));
  return Value::boolean(one_case(text, name == "isupper", context));
}

}  // namespace

bool is_method(const Value& self, std::string_view name) {
  if (self.text()) return std::ranges::count(kStringMethods, name) > 0;
  if (self.items()) return std::ranges::count(kListMethods, name) > 0;
  return self.dict() && std::ranges::count(kDictMethods, name) > 0;
}

Value call_method(const Value& self, std::string_view name, const Arguments& a, Context& context) {
  if (self.text()) return call_of_string(*self.text(), name, a, context);
  if (const Items* list = self.items()) {
    check_arguments(a, 1, {}, str("the method '", name, "'"), context);
    int64_t n = 0;
    for (const Value& item : list->items) {
      const bool same = context.equal(item, a.get(0, ""));
      if (name == "index" && same) return Value::integer(n);
      n += name == "index" || same;
    }
    if (name == "index") context.fail("the list does not contain the value of index");
    return Value::integer(n);
  }
  const Dict& dict = *self.dict();
  check_arguments(a, name == "get" ? 2 : 0, {}, str("the method '", name, "'"), context);
  if (name == "get") {
    if (a.values.empty()) context.fail("the method 'get' needs a key");
    const Value* found = context.find(dict, a.values[0]);
    return found ? *found : a.get(1, "");
  }
  std::vector<Value> items;
  for (const auto& [key, value] : dict.items)
    items.push_back(name == "keys" ? key : name == "values" ? value : context.list({key, value}, true));
  const char* view = name == "keys" ? "dict_keys" : name == "values" ? "dict_values" : "dict_items";
  return context.list(std::move(items), false, view);
}

Text strip(const Text& text, const Value& set, bool left, bool right, Context& context) {
  context.spend(1 + text.size() / 16);
  std::vector<char32_t> characters;
  if (!set.is_none()) {
    const Text& chosen = text_of(set, "strip", context);
    for (size_t at = 0; at < chosen.size();) characters.push_back(next_code_point(chosen.bytes, at));
  }
  const auto goes = [&](char32_t c) {
    if (set.is_none()) return is_python_space(c);
    context.spend(1 + characters.size() / 16);
    return std::ranges::count(characters, c) > 0;
  };
  size_t begin = 0, end = text.size();
  for (size_t at = 0; left && begin < end && goes(next_code_point(text.bytes, at));) begin = at;
  for (size_t at = end; right && end > begin && goes(previous_code_point(text.bytes, at));) end = at;
  return text.sub(begin, end - begin);
}

Text replace(const Text& text, const Text& from, const Text& to, int64_t count, Context& context) {
  Text out;
  size_t begin = 0;
  const auto put = [&](size_t end) {
    out += text.sub(begin, end - begin);
    begin = end;
    context.spend(1);
    if (out.size() > Context::max_text) context.fail("a text is too long");
  };
  if (from.size() == 0) {  // before every character, and at the end
    for (const size_t at : characters(text, context)) {
      put(at);
      if (count-- != 0) out += to;
      if (count == -1) break;
    }
  } else {
    context.spend(text.size() / 8);
    for (size_t at; count != 0 && (at = text.bytes.find(from.bytes, begin)) != std::string::npos; --count) {
      put(at);
      out += to;
      begin += from.size();
    }
  }
  out += text.sub(begin);
  return out;
}

Text reversed(const Text& text, Context& context) {
  const std::vector<size_t> begin = characters(text, context);
  Text out;
  for (size_t i = begin.size() - 1; i > 0; --i) out += text.sub(begin[i - 1], begin[i] - begin[i - 1]);
  return out;
}

Text with_case(const Text& text, Case form, Context& context) {
  context.spend(1 + text.size() / 2);
  Text out;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const char mark = text.marks[at];
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(text.bytes, at));
    const bool first = form != Case::upper && begins;
    const bool up = form == Case::upper || (first && form != Case::lower);
    std::string changed;
    if (up && c == 0xDF)
      changed = form == Case::upper ? "SS" : "Ss";
    else if (!up && c == 0x130)
      changed = "i\u0307";
    else
      append_utf8(changed, static_cast<char32_t>(!up     ? utf8proc_tolower(c)
                                                 : first ? utf8proc_totitle(c)
                                                         : utf8proc_toupper(c)));
    out.add(changed, mark);
    begins = form == Case::title && !is_letter(static_cast<char32_t>(c));
  }
  return out;
}

int64_t integer_of(const Value& value, const std::string& what, Context& context) {
  if (const bool* x = value.boolean()) return *x ? 1 : 0;
  if (!value.integer()) context.fail(str(what, " must be an integer, found ", value.kind()));
  return *value.integer();
}

}  // namespace braid::models::text::jinja
