// Changes of a JSON text that leave it JSON: libFuzzer's own changes break nearly every document at its first byte.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace braid::fuzzing {

using Json = nlohmann::ordered_json;
using Random = std::minstd_rand;

inline void every_value(Json& at, std::vector<Json*>& into) {
  into.push_back(&at);
  if (at.is_structured())
    for (Json& below : at) every_value(below, into);
}

inline void mutate_bytes(std::string& text) {
  const size_t size = text.size();
  text.resize(size + 16);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
}

inline Json strange_value(Random& random) {
  static const Json values = Json::parse(
      R"([0, 1, -1, 2, 64, 255, 256, 65536, 2147483648, 9223372036854775807, 18446744073709551615, -9223372036854775808,
          0.5, -0.0, 1e-9, 1e300, null, true, false, "", "a", "ü", "\u0000", "\ud83d\ude00", [], {}, [[]], [0, 1],
          {"type": "Sequence"}, {"a": null}])");
  return values[random() % values.size()];
}

inline void mutate_value(Json& document, Random& random) {
  std::vector<Json*> all;
  every_value(document, all);
  Json& at = *all[random() % all.size()];
  const Json other = *all[random() % all.size()];
  switch (random() % 9) {
    case 0:
      at = strange_value(random);
      break;
    case 1:
      at = other;
      break;
    case 2:
      if (at.is_structured() && !at.empty()) at.erase(std::next(at.begin(), random() % at.size()));
      break;
    case 3:
      if (at.is_array()) at.insert(std::next(at.begin(), random() % (at.size() + 1)), other);
      if (at.is_object()) at[other.is_string() ? other.get<std::string>() : "new"] = strange_value(random);
      break;
    case 4:  // a member under another's name
      if (at.is_object() && !at.empty()) {
        const auto from = std::next(at.begin(), random() % at.size());
        std::string name = from.key();
        const Json value = from.value();
        mutate_bytes(name);
        at[name] = value;
      }
      break;
    case 5:
      if (at.is_number_integer())
        at = static_cast<int64_t>(static_cast<uint64_t>(at.get<int64_t>()) + random() % 5 - 2);
      if (at.is_number_float()) at = at.get<double>() * 2;
      if (at.is_boolean()) at = !at.get<bool>();
      break;
    case 6:
      at = Json::array({at});
      break;
    case 7:
      if (at.is_array() && at.size() > 1) std::swap(at[random() % at.size()], at[random() % at.size()]);
      break;
    default:
      if (at.is_string()) {
        auto text = at.get<std::string>();
        mutate_bytes(text);
        at = text;
      }
  }
}

// `text` with one to four of them; a text that is no JSON, and one in eight others, by its bytes.
inline std::string mutate_json(std::string text, Random& random) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded() || random() % 8 == 0) {
    mutate_bytes(text);
    return text;
  }
  for (size_t n = 1 + random() % 4; n > 0; --n) mutate_value(document, random);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace braid::fuzzing
