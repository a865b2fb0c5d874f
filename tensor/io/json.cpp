#include "braid/tensor/io/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {

using nlohmann::json;

json parse_json(std::string_view text, const std::string& path, int64_t first_byte) {
  std::vector<std::set<std::string>> names;  // of the open objects; an empty set for an open array
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      names.emplace_back();
      if (names.size() > static_cast<size_t>(max_json_depth))
        fail_input("JSON is nested too deeply", path, -1, str("at most ", max_json_depth, " levels"), "more",
                   "the file is damaged");
    } else if (event == Event::object_end || event == Event::array_end) {
      names.pop_back();
    } else if (event == Event::key && !names.back().insert(value.get<std::string>()).second) {
      fail_input("JSON object", path, -1, "every name once", value.dump(-1, ' ', true) + " twice",
                 "the file is damaged");
    }
    return true;
  };
  // The parser would take a NUL byte for the end of the text and ignore what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail_input("cannot read JSON", path, first_byte + static_cast<int64_t>(nul), "valid JSON", "a NUL byte",
               "the file is damaged or of another kind");
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& e) {
    const auto byte = first_byte + std::max<int64_t>(static_cast<int64_t>(e.byte) - 1, 0);
    std::string cause = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    if (const size_t at = cause.find("] "); at != std::string::npos) cause = cause.substr(at + 2);
    fail_input("cannot read JSON", path, byte, "valid JSON", "\"" + cause + "\"",
               "the file is damaged or of another kind");
  } catch (const json::exception& e) {  // a number out of range
    fail_input("cannot read JSON", path, -1, "valid JSON", str("\"", e.what(), "\""), "");
  }
}

json read_json_file(const std::string& path, int64_t max_bytes) {
  return parse_json(read_text_file(path, max_bytes), path);
}

}  // namespace braid::io
