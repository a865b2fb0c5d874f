// The fixtures of tests/golden/tokenizers: results of the Hugging Face package `tokenizers` 0.23.3, compressed.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/tensor/base/strings.h"
#include "tests/support/places.h"

inline std::string golden_text(const std::string& name) {
  const auto stream =
      braid::models::text::open_stream(braid::test::source_dir() + "/tests/golden/tokenizers/" + name + ".zst");
  std::string text;
  for (std::string buffer(1 << 16, '\0');;) {
    const int64_t n = stream->read(buffer.data(), static_cast<int64_t>(buffer.size()));
    if (n == 0) return text;
    text.append(buffer, 0, static_cast<size_t>(n));
  }
}

inline nlohmann::json golden_json(const std::string& name) { return nlohmann::json::parse(golden_text(name)); }

inline std::vector<nlohmann::json> golden_lines(const std::string& name) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : braid::detail::split(golden_text(name), '\n'))
    if (!line.empty()) lines.push_back(nlohmann::json::parse(line));
  return lines;
}
