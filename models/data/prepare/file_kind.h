// What a file of a corpus contains, told by its first bytes, whatever its name.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::models::text {

enum class FileKind : uint8_t {
  text,        // one document
  json_lines,  // an object in each line
  json_list,   // a list of objects
  other,       // something else than text
};

struct FoundKind {
  FileKind kind = FileKind::text;
  std::string what = {};    // of other, for messages: "a PNG image"
  std::string advice = {};  // of other: what to do
};

inline constexpr size_t sniffed_bytes = 8192;

// begin: the first sniffed_bytes of the file, decompressed, or all of it. A name that ends in .jsonl or .ndjson says
// that text is lines of JSON; text of other names is JSON when it begins so.
FoundKind kind_of_file(const std::string& path, std::string_view begin);

// Does the name end in .jsonl or .ndjson, in letters of any case, also with .gz or .zst?
bool names_json_lines(const std::string& path);

}  // namespace braid::models::text
