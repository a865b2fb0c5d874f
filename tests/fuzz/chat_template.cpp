#include <nlohmann/json.hpp>

#include "braid/models/data/prepare/template/template.h"
#include "tests/fuzz/fuzz.h"

// The input is a template; its messages have something of every kind.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace braid::models::text::jinja;
  static const auto messages = nlohmann::ordered_json::parse(
      R"([{"role": "user", "content": "a ü 日\n", "n": 1, "f": 0.5, "b": true, "z": null, "l": [1, "x", {"k": []}]}])");
  return fuzz([&] {
    const Template made(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    const Text text = made.render({{"messages", Value::of(messages)}, {"s", Value::string("x y")}});
    if (text.marks.size() != text.bytes.size()) __builtin_trap();
  });
}
