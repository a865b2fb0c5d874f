// Fields of a request's JSON, read one by one. What is wrong is an ApiError(400) that names the field and its limits.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::apps::serve {

inline constexpr int max_body_depth = 32;            // objects and lists inside one another
inline constexpr int64_t max_body_values = 1000000;  // of the whole text, so that its memory is bounded

// The object that the text is. ApiError(400) where it is none, or has a name twice in one object, too many levels or
// too many values.
nlohmann::json parse_body(std::string_view text);
// The same text with names in their order. Each is compared with all before it in its object: ApiError(400) where these
// are too many pairs.
inline constexpr int64_t max_name_pairs = 200'000'000;  // 20000 names in one object
nlohmann::ordered_json parse_ordered_body(std::string_view text);

// Reads an object. Fields that are missing or null are none; names that nobody asks for are ignored.
class Fields {
 public:
  // prefix: what stands before the names in messages, for example "messages[2].".
  explicit Fields(const nlohmann::json& object, std::string prefix = "") : object_(object), prefix_(prefix) {}

  bool has(const char* name) const { return find(name) != nullptr; }
  std::optional<int64_t> integer(const char* name, int64_t min, int64_t max) const;
  std::optional<double> number(const char* name, double min, double max) const;
  // Greater than 0, at most max.
  std::optional<double> positive(const char* name, double max) const;
  std::optional<bool> boolean(const char* name) const;
  std::optional<std::string> text(const char* name) const;
  const nlohmann::json* find(const char* name) const;  // nullptr: missing or null
  [[noreturn]] void bad(const std::string& name, const std::string& expected, const nlohmann::json& found) const;

 private:
  const nlohmann::json& object_;
  std::string prefix_;
};

// Token ids from 0 to below `ids`. `name` is the field, for messages.
std::vector<int32_t> token_ids(const Fields& fields, const std::string& name, const nlohmann::json& list, int64_t ids);

// The kind of a value in words, without its contents: "a string", "a list", "the number 3".
std::string kind_of(const nlohmann::json& value);

}  // namespace braid::apps::serve
