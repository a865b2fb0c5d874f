// JSON as Python's json.dumps writes it with ensure_ascii=False: what models saw in training where templates write
// tools and calls.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace braid::models::text {

struct JsonStyle {
  int indent = -1;                   // spaces of a level; negative: one line
  std::string item = "", name = "";  // separators; empty: "," (indented) or ", ", and ": "
};
std::string json_text(const nlohmann::ordered_json& value, const JsonStyle& style = {});
// A number as Python's repr writes it: 1.0, 1e-07, 1e+16.
std::string python_float(double value);

}  // namespace braid::models::text
