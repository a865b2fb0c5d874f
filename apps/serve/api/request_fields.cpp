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

std::string in_range(int64_t min, int64_t max) {
  using All = std::numeric_limits<int64_t>;
  if (max == All::max() && min > All::min()) return str("an integer of at least ", min);
  return str("an integer from ", min, " to ", max);
}

}  // namespace

json parse_body(std::string_view text) {
  std::vector<std::set<std::string>> names;  // of the open objects; an empty set for an open list
  int64_t values = 0;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      names.emplace_back();
      if (std::ssize(names) > max_body_depth)
        throw ApiError(400, str("the body is nested too deeply: at most ", max_body_depth,
                                " objects and lists may lie inside one another"));
    } else if (event == Event::object_end || event == Event::array_end) {
      names.pop_back();
    } else if (event == Event::key && !names.back().insert(value.get<std::string>()).second) {
      throw ApiError(400, "the body has an object with the same name twice: every name may be given once");
    }
    if (++values > 2 * max_body_values)  // a list counts at its beginning and at its end, a name of an object too
      throw ApiError(400, str("the body has too many values: at most ", max_body_values,
                              " are read; send fewer prompts at a time"));
    return true;
  };
  // The parser would take a NUL byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) throw ApiError(400, "the body is not JSON: it has a NUL byte");
  json body;
  try {
    body = json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    throw ApiError(400, str("the body is not JSON in UTF-8: error at byte ", error.byte, " of ", text.size()));
  } catch (const json::exception&) {
    throw ApiError(400, "the body is not JSON: it has a number out of range");
  }
  if (!body.is_object()) throw ApiError(400, "the body must be a JSON object, found " + kind_of(body));
  return body;
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
