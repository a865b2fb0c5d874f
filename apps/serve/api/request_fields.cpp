#include "apps/serve/api/request_fields.h"

#include <cmath>
#include <limits>
#include <set>

#include "apps/cli/text.h"
#include "apps/serve/api/api_error.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A body before its values are kept. No callback of the parser does this: with one, it walks at the end of every object
// through the whole list that the object is in.
class BodyCheck final : public json::json_sax_t {
 public:
  // ApiError(400) where the text is no JSON, has a name twice in one object, too many levels or too many values.
  explicit BodyCheck(std::string_view text) : bytes_(text.size()) { json::sax_parse(text.begin(), text.end(), this); }

  int64_t name_pairs() const { return name_pairs_; }  // of the same object

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    name_pairs_ += std::ssize(names_.back());
    if (!names_.back().insert(name).second)
      throw ApiError(400, "the body has an object with the same name twice: every name may be given once");
    return value();
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int out_of_range = 406;
    if (error.id == out_of_range) throw ApiError(400, "the body is not JSON: it has a number out of range");
    throw ApiError(400, str("the body is not JSON in UTF-8: error at byte ", byte, " of ", bytes_));
  }

 private:
  bool open() {
    names_.emplace_back();
    if (std::ssize(names_) > max_body_depth)
      throw ApiError(400, str("the body is nested too deeply: at most ", max_body_depth,
                              " objects and lists may lie inside one another"));
    return value();
  }
  bool close() {
    names_.pop_back();
    return value();
  }
  bool value() {
    if (++values_ > 2 * max_body_values)  // a list counts at its beginning and at its end, a name of an object too
      throw ApiError(400, str("the body has too many values: at most ", max_body_values,
                              " are read; send fewer prompts at a time"));
    return true;
  }

  const size_t bytes_;
  std::vector<std::set<std::string>> names_;  // of the open objects; an empty set for an open list
  int64_t values_ = 0, name_pairs_ = 0;
};

std::string in_range(int64_t min, int64_t max) {
  using All = std::numeric_limits<int64_t>;
  if (max == All::max() && min > All::min()) return str("an integer of at least ", min);
  return str("an integer from ", min, " to ", max);
}

}  // namespace

json parse_body(std::string_view text) {
  // The parser would take a NUL byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) throw ApiError(400, "the body is not JSON: it has a NUL byte");
  const BodyCheck check(text);
  json body = json::parse(text.begin(), text.end());
  if (!body.is_object()) throw ApiError(400, "the body must be a JSON object, found " + kind_of(body));
  return body;
}

ordered_json parse_ordered_body(std::string_view text) {
  if (BodyCheck(text).name_pairs() > max_name_pairs)
    throw ApiError(400, "the body has an object with too many names: at most 20000 are read");
  return ordered_json::parse(text.begin(), text.end());
}

std::string kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return value.get_ref<const std::string&>().empty() ? "an empty string" : "a string";
    case json::value_t::array:
      return value.empty() ? "an empty list" : "a list";
    case json::value_t::object:
      return "an object";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::number_float:  // 1.0, which is no integer, with its point
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "the number " + value.dump();
    default:
      return "null";
  }
}

const json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::bad(const std::string& name, const std::string& expected, const json& found) const {
  const std::string field = prefix_ + name;
  throw ApiError(400, "bad value of '" + field + "': expected " + expected + ", found " + kind_of(found), field,
                 "invalid_value");
}

std::optional<int64_t> Fields::integer(const char* name, int64_t min, int64_t max) const {
  const json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number_integer()) bad(name, in_range(min, max), *value);
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(max) && max >= 0)
    bad(name, in_range(min, max), *value);
  const auto number = value->get<int64_t>();
  if (number < min || number > max) bad(name, in_range(min, max), *value);
  return number;
}

std::optional<double> Fields::number(const char* name, double min, double max) const {
  const json* value = find(name);
  if (!value) return std::nullopt;
  const double x = value->is_number() ? value->get<double>() : NAN;
  if (!(x >= min && x <= max)) bad(name, "a number from " + decimal(min) + " to " + decimal(max), *value);
  return x;
}

std::optional<double> Fields::positive(const char* name, double max) const {
  const json* value = find(name);
  if (!value) return std::nullopt;
  const double x = value->is_number() ? value->get<double>() : NAN;
  if (!(x > 0 && x <= max)) bad(name, "a number above 0, at most " + decimal(max), *value);
  return x;
}

std::optional<bool> Fields::boolean(const char* name) const {
  const json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) bad(name, "true or false", *value);
  return value->get<bool>();
}

std::optional<std::string> Fields::text(const char* name) const {
  const json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) bad(name, "a string", *value);
  return value->get<std::string>();
}

std::vector<int32_t> token_ids(const Fields& fields, const std::string& name, const json& list, int64_t ids) {
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  for (const json& id : list) {
    const bool fits = id.is_number_integer() && (id.is_number_unsigned() || id.get<int64_t>() >= 0) &&
                      id.get<uint64_t>() < static_cast<uint64_t>(ids);
    if (!fits) fields.bad(str(name, "[", tokens.size(), "]"), str("a token id from 0 to ", ids - 1), id);
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

}  // namespace braid::apps::serve
