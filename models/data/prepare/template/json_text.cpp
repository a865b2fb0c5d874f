#include "braid/models/data/prepare/template/json_text.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace braid::models::text {
namespace {

using nlohmann::ordered_json;

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {
    if (style_.item.empty()) style_.item = style_.indent < 0 ? ", " : ",";
    if (style_.name.empty()) style_.name = ": ";
  }
  std::string text;

  void value(const ordered_json& v, int level) {
    if (v.is_number_float()) {
      const double x = v.get<double>();
      text += std::isnan(x) ? "NaN" : std::isinf(x) ? x < 0 ? "-Infinity" : "Infinity" : python_float(x);
    } else if (v.is_array()) {
      list(v, level, "[]", [&](const auto& item) { value(item.value(), level + 1); });
    } else if (v.is_object()) {
      list(v, level, "{}", [&](const auto& item) {
        text += ordered_json(item.key()).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + style_.name;
        value(item.value(), level + 1);
      });
    } else {
      text += v.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    }
  }

 private:
  template <class Each>
  void list(const ordered_json& v, int level, const char* brackets, const Each& each) {
    text += brackets[0];
    bool first = true;
    for (const auto& item : v.items()) {
      if (!std::exchange(first, false)) text += style_.item;
      line(level + 1);
      each(item);
    }
    if (!v.empty()) line(level);
    text += brackets[1];
  }
  void line(int level) {
    if (style_.indent >= 0) text += "\n" + std::string(static_cast<size_t>(style_.indent * level), ' ');
  }
  JsonStyle style_;
};

}  // namespace

std::string json_text(const ordered_json& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.value(value, 0);
  return std::move(writer.text);
}

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

}  // namespace braid::models::text
