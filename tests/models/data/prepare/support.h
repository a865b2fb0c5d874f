// Shared by the tests of `prepare`.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/models/data/prepare/prepare.h"
#include "braid/models/data/text/dataset.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using models::text::Dataset;
using models::text::PrepareOptions;
using models::text::Split;

// All tokens of a split as text; the end of a document is shown as "|".
inline std::string text_of(const std::string& folder, Split split) {
  const Dataset d(folder, split, 1);
  std::vector<int32_t> tokens(static_cast<size_t>(d.tokens()));
  d.read(0, tokens);
  std::string text;
  for (const int32_t t : tokens) text += t == 256 ? std::string("|") : std::string(d.tokenizer().token_bytes(t));
  return text;
}

inline std::string thousand_lines() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

inline std::string jsonl(int documents) {
  std::string file;
  for (int i = 0; i < documents; ++i) file += "{\"text\": \"document " + std::to_string(i) + "\"}\n";
  return file;
}

inline size_t text_of_jsonl(int documents) {  // bytes of the documents of jsonl() and their ends
  size_t bytes = 0;
  for (int i = 0; i < documents; ++i) bytes += ("document " + std::to_string(i) + "|").size();
  return bytes;
}

inline std::string all_files(const TempFolder& folder, const std::string& sub) {
  std::map<std::string, std::string> files;
  for (const auto& e : std::filesystem::directory_iterator(folder.path / sub)) {
    const std::string name = e.path().filename().string();
    files[name] = folder.read(sub + "/" + name);
  }
  std::string all;
  for (const auto& [name, bytes] : files) all += name + "\n" + bytes;
  return all;
}
