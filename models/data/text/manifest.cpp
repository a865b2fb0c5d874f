#include "braid/models/data/text/manifest.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* format = "braid-dataset";
constexpr int kManifestVersion = 1;
constexpr const char* validation_names[] = {"documents", "each_file", "given"};  // in the order of the enumeration

std::string path_of(const std::string& folder) { return (std::filesystem::path(folder) / manifest_name).string(); }

ordered_json to_json(const SplitInfo& split) {
  ordered_json shards = ordered_json::array();
  for (const ShardInfo& s : split.shards) {
    shards.push_back({{"file", s.file}, {"tokens", s.tokens}, {"checksum", detail::hex(s.checksum, 8)}});
    if (!s.marks.empty()) shards.back()["marks"] = {{"file", s.marks}, {"checksum", detail::hex(s.marks_checksum, 8)}};
  }
  return {{"tokens", split.tokens}, {"documents", split.documents}, {"shards", shards}};
}

ordered_json to_json(const Manifest& m) {
  ordered_json tasks = ordered_json::array();
  for (const TaskFileInfo& t : m.tasks)
    tasks.push_back({{"file", t.file}, {"samples", t.samples}, {"checksum", detail::hex(t.checksum, 8)}});
  ordered_json chosen = {{"seed", m.seed}, {"val_fraction", m.val_fraction}};
  if (m.validation != Validation::documents) chosen["validation"] = validation_names[static_cast<int>(m.validation)];
  ordered_json j = {{"format", format},
                    {"version", kManifestVersion},
                    {"tokenizer",
                     {{"name", m.tokenizer},
                      {"fingerprint", detail::hex(m.tokenizer_fingerprint, 16)},
                      {"vocab_size", m.vocab_size}}},
                    {"split", chosen},
                    {"train", to_json(m.train)},
                    {"val", to_json(m.val)},
                    {"tasks", tasks}};
  if (m.samples) j["samples"] = {{"begin", m.samples->begin}, {"turn", m.samples->turn}};
  if (m.samples && !m.samples->folder.empty()) j["samples"]["folder"] = m.samples->folder;
  if (holds_preferences(m)) j["samples"]["preferences"] = true;
  return j;
}

// Two checksums of the canonical text, the second over the text reversed in role: 64 bits of identity.
std::string fingerprint_of(const Manifest& m) {
  const std::string text = to_json(m).dump();
  const auto n = static_cast<int64_t>(text.size());
  const uint64_t high = io::crc32c(text.data(), n);
  return detail::hex(high << 32 | io::crc32c(text.data(), n, 0x9E3779B9u), 16);
}

uint32_t checksum_of(const std::string& text) { return io::crc32c(text.data(), static_cast<int64_t>(text.size())); }
// The checksum of all fields, in the order of their names, without the checksum itself.
uint32_t checksum_of_fields(json fields) {
  fields.erase("crc32c");
  return checksum_of(fields.dump());
}

// Reads one field after another; every error names the field.
struct Fields {
  const std::string& path;

  [[noreturn]] void bad(const std::string& name, const std::string& expected, const json& found) const {
    const std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
    io::fail_input("bad field \"" + name + "\"", path, -1, expected, text, "make the data again with `braid prepare`");
  }
  json get(const json& parent, const std::string& name) const {
    if (!parent.is_object() || !parent.contains(name)) bad(name, "a value", json());
    return parent.at(name);
  }
  std::string text(const json& parent, const std::string& name) const {
    const json v = get(parent, name);
    if (!v.is_string()) bad(name, "a string", v);
    return v.get<std::string>();
  }
  int64_t count(const json& parent, const std::string& name, int64_t max = INT64_MAX) const {
    const json v = get(parent, name);
    if (!v.is_number_unsigned() || v.get<uint64_t>() > static_cast<uint64_t>(max))
      bad(name, str("an integer up to ", max), v);
    return v.get<int64_t>();
  }
  uint64_t hex_number(const json& parent, const std::string& name, size_t digits) const {
    const std::string v = text(parent, name);
    if (v.size() != digits || v.find_first_not_of("0123456789abcdef") != std::string::npos)
      bad(name, str(digits, " hexadecimal digits"), v);
    return std::stoull(v, nullptr, 16);
  }
  std::string file(const json& parent) const { return file_name(text(parent, "file")); }
  // A name inside the folder: nothing may point out of it.
  std::string file_name(std::string v) const {
    if (v.empty() || v.front() == '.' || v.find('/') != std::string::npos || v.find('\0') != std::string::npos)
      bad("file", "a file name without folder", v);
    return v;
  }
  json list(const json& parent, const std::string& name) const {
    json v = get(parent, name);
    if (!v.is_array()) bad(name, "a list", v);
    return v;
  }
  SplitInfo split(const json& root, const std::string& name) const {
    const json j = get(root, name);
    SplitInfo s{count(j, "tokens"), count(j, "documents"), {}};
    int64_t sum = 0;
    for (const json& shard : list(j, "shards")) {
      s.shards.push_back({file(shard), count(shard, "tokens", int64_t{1} << 48),
                          static_cast<uint32_t>(hex_number(shard, "checksum", 8))});
      if (shard.contains("marks")) {
        const json marks = get(shard, "marks");
        s.shards.back().marks = file(marks);
        s.shards.back().marks_checksum = static_cast<uint32_t>(hex_number(marks, "checksum", 8));
      }
      if (__builtin_add_overflow(sum, s.shards.back().tokens, &sum)) bad("tokens", "a sum that fits 64 bits", shard);
    }
    if (sum != s.tokens) bad(name + ".tokens", str(sum, ", the sum over its shards"), s.tokens);
    return s;
  }
};

}  // namespace

void write_manifest(const std::string& folder, Manifest& manifest, const std::vector<TokenizerFile>& tokenizer) {
  manifest.fingerprint = fingerprint_of(manifest);
  ordered_json j = to_json(manifest);
  j["fingerprint"] = manifest.fingerprint;
  for (const ValidationFile& f : manifest.validation_files)
    j["validation_files"].push_back(
        {{"file", detail::replace_invalid_utf8(f.file)}, {"tokens", f.tokens}, {"tail", f.tail}});
  for (const TokenizerFile& file : tokenizer) manifest.files[file.name] = checksum_of(file.contents);
  for (const auto& [name, crc] : manifest.files) j["files"][name] = detail::hex(crc, 8);
  j["crc32c"] = detail::hex(checksum_of_fields(j), 8);
  io::write_file(path_of(folder), j.dump(2) + "\n");
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = path_of(folder);
  const json j = io::read_json_file(path, 256 << 20);
  const Fields f{path};
  if (f.text(j, "format") != format) f.bad("format", format, j["format"]);
  if (f.count(j, "version") != kManifestVersion) f.bad("version", std::to_string(kManifestVersion), j["version"]);
  Manifest m;
  const json tokenizer = f.get(j, "tokenizer"), split = f.get(j, "split");
  m.tokenizer = f.text(tokenizer, "name");
  m.tokenizer_fingerprint = f.hex_number(tokenizer, "fingerprint", 16);
  m.vocab_size = f.count(tokenizer, "vocab_size", INT32_MAX);
  const json seed = f.get(split, "seed"), fraction = f.get(split, "val_fraction");
  if (!seed.is_number_unsigned()) f.bad("seed", "an integer", seed);
  if (!fraction.is_number() || !(fraction >= 0 && fraction < 1)) f.bad("val_fraction", "a number in [0, 1)", fraction);
  m.seed = seed.get<uint64_t>();
  m.val_fraction = fraction.get<double>();
  if (split.contains("validation")) {  // absent: whole documents
    const std::string method = f.text(split, "validation");
    const auto found = std::find(std::begin(validation_names), std::end(validation_names), method);
    if (found == std::end(validation_names)) f.bad("validation", "each_file or given", method);
    m.validation = static_cast<Validation>(found - std::begin(validation_names));
  }
  if (j.contains("validation_files"))
    for (const json& v : f.list(j, "validation_files"))
      m.validation_files.push_back({f.text(v, "file"), f.count(v, "tokens"), f.get(v, "tail") == true});
  m.train = f.split(j, "train");
  m.val = f.split(j, "val");
  for (const json& t : f.list(j, "tasks"))
    m.tasks.push_back({f.file(t), f.count(t, "samples"), static_cast<uint32_t>(f.hex_number(t, "checksum", 8))});
  if (j.contains("samples")) {
    const json samples = f.get(j, "samples");
    m.samples = SampleInfo{f.text(samples, "begin"), f.text(samples, "turn")};
    if (samples.is_object() && samples.contains("folder")) m.samples->folder = f.text(samples, "folder");
    if (samples.is_object() && samples.contains("preferences")) m.samples->preferences = samples["preferences"] == true;
  }
  for (const SplitInfo* s : {&m.train, &m.val})
    for (const ShardInfo& shard : s->shards)
      if (shard.marks.empty() == m.samples.has_value()) f.bad("marks", "marks beside every shard of samples", json());
  if (j.contains("files") && f.get(j, "files").is_object())
    for (const auto& [name, crc] : j["files"].items())
      m.files[f.file_name(name)] = static_cast<uint32_t>(f.hex_number(j["files"], name, 8));
  for (const auto& [name, expected] : m.files) {
    const std::string file = (std::filesystem::path(folder) / name).string();
    io::Reader reader(file);
    const uint32_t found = checksum_of(reader.read_string(reader.size()));
    if (found != expected)
      io::fail_input("a file that belongs to the data has changed", file, -1,
                     "the checksum " + detail::hex(expected, 8), detail::hex(found, 8),
                     "restore it, or make the data again with `braid prepare`");
  }
  m.fingerprint = f.text(j, "fingerprint");
  if (m.fingerprint != fingerprint_of(m)) f.bad("fingerprint", fingerprint_of(m), m.fingerprint);
  const bool older = !j.contains("crc32c") && !j.contains("files");  // than these checksums
  if (!older && f.hex_number(j, "crc32c", 8) != checksum_of_fields(j))
    f.bad("crc32c", detail::hex(checksum_of_fields(j), 8), j["crc32c"]);
  return m;
}

}  // namespace braid::models::text
