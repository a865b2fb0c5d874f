// What Braid makes of files, for tests/fuzz/differential.py: reads "KIND BYTES\n" and so many bytes, again and again,
// and writes a line of JSON for each. KIND: safetensors, or tokenizer, whose bytes are {"file": ..., "texts": [...]}.
#include <iostream>
#include <nlohmann/json.hpp>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/safetensors.h"

namespace {

using nlohmann::json;

json tensors_of(const std::string& bytes) {
  const braid::io::SafetensorsFile file(std::as_bytes(std::span(bytes)), "file");
  json tensors = json::object();
  for (const auto& info : file.tensors()) {
    tensors[info.name] = {{"dtype", info.dtype_name},
                          {"shape", json::array()},
                          {"crc", braid::io::crc32c(bytes.data() + info.offset, info.bytes)}};
    for (const int64_t n : info.shape) tensors[info.name]["shape"].push_back(n);
  }
  return {{"tensors", tensors}, {"metadata", file.metadata()}};
}

json ids_of(const std::string& bytes) {
  const json call = json::parse(bytes);
  const auto tokenizer = braid::models::text::parse_tokenizer(call["file"].get<std::string>(), "file");
  json ids = json::array(), texts = json::array();
  for (const json& text : call["texts"]) {
    ids.push_back(tokenizer->with_template(tokenizer->encode(text.get<std::string>(), true)));
    texts.push_back(tokenizer->decode(ids.back().get<std::vector<int32_t>>(), true));
  }
  return {{"ids", ids}, {"texts", texts}};
}

}  // namespace

int main() {
  std::string kind, bytes;
  size_t size = 0;
  while (std::cin >> kind >> size) {
    std::cin.get();
    bytes.resize(size);
    std::cin.read(bytes.data(), static_cast<std::streamsize>(size));
    json answer;
    try {
      answer = kind == "safetensors" ? tensors_of(bytes) : ids_of(bytes);
    } catch (const braid::Error& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
  }
  return std::cin.eof() ? 0 : 1;
}
