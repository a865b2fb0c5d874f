#include "braid/models/data/prepare/file_kind.h"

#include <algorithm>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/tensor/io/json.h"

namespace braid::models::text {
namespace {

using namespace std::string_view_literals;

struct Format {
  std::string_view begin;
  const char* what;
};
// Formats by their first bytes. None of them begins a text.
constexpr Format kColumns[] = {{"PAR1"sv, "a file of columns (Parquet)"},
                               {"ARROW1\0\0"sv, "a file of columns (Arrow)"},
                               {"\xFF\xFF\xFF\xFF"sv, "a file of columns (a stream of Arrow)"},
                               {"Obj\1"sv, "a file of rows (Avro)"},
                               {"\x89HDF\r\n\x1A\n"sv, "a file of arrays (HDF5)"},
                               {"\x93NUMPY"sv, "an array of NumPy"},
                               {"\x80\2"sv, "a pickle of Python"},
                               {"\x80\3"sv, "a pickle of Python"},
                               {"\x80\4"sv, "a pickle of Python"},
                               {"\x80\5"sv, "a pickle of Python"},
                               {"SQLite format 3\0"sv, "a database of SQLite"}};
constexpr Format kArchives[] = {{"PK\3\4"sv, "a zip archive"},
                                {"PK\5\6"sv, "a zip archive"},
                                {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive"},
                                {"Rar!\x1A\7"sv, "a RAR archive"},
                                {"\xFD\x37zXZ\0"sv, "xz data"},
                                {"\x5D\0\0"sv, "LZMA data"},
                                {"LZIP\1"sv, "lzip data"},
                                {"\x04\x22\x4D\x18"sv, "LZ4 data"},
                                {"\x1F\x9D"sv, "data of compress (.Z)"},
                                {"\x1F\xA0"sv, "data of compress (.Z)"}};
constexpr Format kOthers[] = {{"%PDF-"sv, "a PDF document"},      {"\xD0\xCF\x11\xE0"sv, "an Office document"},
                              {"{\\rtf"sv, "an RTF document"},    {"\x89PNG\r\n\x1A\n"sv, "a PNG image"},
                              {"\xFF\xD8\xFF"sv, "a JPEG image"}, {"GIF87a"sv, "a GIF image"},
                              {"GIF89a"sv, "a GIF image"},        {"\x7F\x45LF"sv, "a program"},
                              {"BRAIDTOK"sv, "a token shard"}};

const char* format_of(std::string_view begin, const auto& formats) {
  for (const Format& format : formats)
    if (begin.starts_with(format.begin)) return format.what;
  return nullptr;
}

FoundKind binary_kind(std::string_view begin) {
  const auto found = [](std::string what, const char* advice) {
    return FoundKind{FileKind::other, std::move(what), advice};
  };
  const char* unpack = "unpack it, or compress its files with gzip or zstd";
  if (const char* what = format_of(begin, kColumns))
    return found(what,
                 "convert it to JSON Lines, for example with to_json(..., orient='records', lines=True) of pandas");
  if (const char* what = format_of(begin, kArchives)) return found(what, unpack);
  if (begin.size() > 4 && begin.starts_with("BZh") && begin.substr(4).starts_with("1AY&SY"))
    return found("bzip2 data", unpack);
  if (begin.size() > 262 && begin.substr(257, 5) == "ustar") return found("a tar archive", unpack);
  if (is_gzip(begin) || is_zstd(begin)) return found("data that were compressed twice", "decompress it once");
  for (const auto& [mark, what] :
       {std::pair{"\xFF\xFE"sv, "UTF-16"}, std::pair{"\xFE\xFF"sv, "UTF-16"}, std::pair{"\0\0\xFE\xFF"sv, "UTF-32"}})
    if (begin.starts_with(mark)) return found(std::string("text in ") + what, "convert it (iconv -t UTF-8)");
  if (const char* what = format_of(begin, kOthers)) return found(what, "convert it to text");
  return {};
}

size_t first_of(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

FoundKind json_kind(const std::string& path, std::string_view begin) {
  if (begin.starts_with("\xEF\xBB\xBF")) begin.remove_prefix(3);
  const auto at = [&](size_t i) { return i < begin.size() ? begin[i] : '\0'; };
  const bool lines = names_json_lines(path), json = lines || ends_in(without_compression(path), ".json");
  const char* advice = "write its items as JSON Lines, an object in each line";
  const size_t first = first_of(begin, 0), inside = first_of(begin, first + 1);
  const bool list = at(first) == '[' && at(inside) == '{';
  if (lines && !list) return {FileKind::json_lines};
  // The first object is whole or goes on behind these bytes. What follows it may have mistakes, which reading finds.
  const size_t end = io::end_of_json(begin, list ? inside : first);
  const bool valid = io::begins_as_json(begin.substr(0, end));
  if (list && (valid || lines)) return {valid ? FileKind::json_list : FileKind::json_lines};
  if (json && valid && (at(first) == '[' || at(first) == '"')) return {FileKind::other, "JSON without objects", advice};
  if (at(first) != '{' || at(inside) != '"' || !valid) return {};
  const size_t next = end == std::string_view::npos ? begin.size() : first_of(begin, end);
  const bool alone = next == begin.size(), several = begin.find('\n', first) < std::min(end, begin.size());
  if (several)
    return alone || json || at(next) == '{' ? FoundKind{FileKind::other, "a JSON object", advice} : FoundKind{};
  // An object that is a line: another line follows, or nothing.
  return alone || json || (begin.find('\n', end) < next && at(next) == '{') ? FoundKind{FileKind::json_lines}
                                                                            : FoundKind{};
}

}  // namespace

bool names_json_lines(const std::string& path) {
  const std::string name = without_compression(path);
  return ends_in(name, ".jsonl") || ends_in(name, ".ndjson");
}

FoundKind kind_of_file(const std::string& path, std::string_view begin) {
  begin = begin.substr(0, sniffed_bytes);
  FoundKind kind = binary_kind(begin);
  return kind.kind == FileKind::other ? kind : json_kind(path, begin);
}

}  // namespace braid::models::text
