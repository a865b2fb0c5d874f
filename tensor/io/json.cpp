#include "braid/tensor/io/json.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {

using nlohmann::json;

namespace {

// The value of a number that is not finite as a double; none for every other word.
std::optional<double> infinite_value(std::string_view word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity" || word == "-Infinity") return word[0] == '-' ? -HUGE_VAL : HUGE_VAL;
  if (word.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return {};
  if (word.size() < 300 && word.find_first_of("eE") == std::string_view::npos) return {};  // too short to overflow
  const double value = std::strtod(std::string(word).c_str(), nullptr);
  return std::isinf(value) ? std::optional(value) : std::nullopt;
}

bool of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

size_t end_of_string(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

template <class Json>
Json parse(std::string_view text, const std::string& path, int64_t first_byte,
           int64_t max_steps = std::numeric_limits<int64_t>::max()) {
  std::vector<std::set<std::string>> names;  // of the open objects; an empty set for an open array
  std::vector<int64_t> parts;                // of the same: names and values
  int64_t steps = 0;
  const FiniteJson finite = finite_json(text);
  size_t token = 0;
  const auto watch = [&](int, typename Json::parse_event_t event, Json& value) {
    using Event = typename Json::parse_event_t;
    const bool start = event == Event::object_start || event == Event::array_start,
               end = event == Event::object_end || event == Event::array_end;
    if (end) parts.pop_back();
    if (!parts.empty() && (event == Event::key || event == Event::object_end)) steps += parts.back();
    if (!parts.empty() && !end) ++parts.back();
    if (start) parts.push_back(0);
    if (steps > max_steps)
      fail_input("JSON has too many objects or names in one list or object", path, -1, "fewer", "more", "");
    if (start) {
      names.emplace_back();
      if (names.size() > static_cast<size_t>(max_json_depth))
        fail_input("JSON is nested too deeply", path, -1, str("at most ", max_json_depth, " levels"), "more",
                   "the file is damaged");
    } else if (end) {
      names.pop_back();
    } else if (event == Event::key && !names.back().insert(value.template get<std::string>()).second) {
      fail_input("JSON object", path, -1, "every name once", value.dump(-1, ' ', true) + " twice",
                 "the file is damaged");
    }
    if (event == Event::key || event == Event::value)
      if (const auto found = finite.infinite.find(token++); found != finite.infinite.end()) value = found->second;
    return true;
  };
  // The parser would take a NUL byte for the end of the text and ignore what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail_input("cannot read JSON", path, first_byte + static_cast<int64_t>(nul), "valid JSON", "a NUL byte",
               "the file is damaged or of another kind");
  try {
    return Json::parse(finite.text.begin(), finite.text.end(), watch);
  } catch (const json::parse_error& e) {
    const auto byte = first_byte + std::max<int64_t>(static_cast<int64_t>(e.byte) - 1, 0);
    std::string cause = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    if (const size_t at = cause.find("] "); at != std::string::npos) cause = cause.substr(at + 2);
    fail_input("cannot read JSON", path, byte, "valid JSON", "\"" + cause + "\"",
               "the file is damaged or of another kind");
  } catch (const json::exception& e) {
    fail_input("cannot read JSON", path, -1, "valid JSON", str("\"", e.what(), "\""), "");
  }
}

// Knows where the parser stopped.
struct Prefix final : json::json_sax_t {
  size_t stopped = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception&) override {
    stopped = byte;
    return false;
  }
};

}  // namespace

FiniteJson finite_json(std::string_view text) {
  FiniteJson result{std::string(text), {}};
  size_t token = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at++;
    if (text[begin] == '"') {
      at = end_of_string(text, begin);
      ++token;
    } else if (of_word(text[begin])) {
      while (at < text.size() && of_word(text[at])) ++at;
      const std::string_view word = text.substr(begin, at - begin);
      if (const auto value = infinite_value(word)) {
        result.infinite[token] = *value;
        // The first digits of a number stay, so that the parser finds mistakes in them.
        const bool digits = word.back() >= '0' && word.back() <= '9';
        const size_t kept = digits ? std::min(word.find_first_of("eE"), size_t{300}) : 0;
        result.text.replace(begin + kept, word.size() - kept, word.size() - kept, ' ');
        if (!digits) result.text[begin] = '0';
      }
      ++token;
    }
  }
  return result;
}

size_t end_of_json(std::string_view text, size_t begin) {
  int64_t depth = 0;
  for (size_t at = begin; at < text.size();) {
    const char c = text[at];
    at = c == '"' ? end_of_string(text, at) : at + 1;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return std::string_view::npos;
}

bool begins_as_json(std::string_view text) {
  const std::string finite = finite_json(text).text;
  Prefix prefix;
  return json::sax_parse(finite.begin(), finite.end(), &prefix) || prefix.stopped > text.size();
}

json parse_json(std::string_view text, const std::string& path, int64_t first_byte) {
  return parse<json>(text, path, first_byte);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& path, int64_t max_steps) {
  return parse<nlohmann::ordered_json>(text, path, 0, max_steps);
}

json read_json_file(const std::string& path, int64_t max_bytes) {
  return parse_json(read_text_file(path, max_bytes), path);
}

}  // namespace braid::io
