#include "braid/tensor/io/journal.h"

#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/line_reader.h"
#include "braid/tensor/io/path_status.h"

namespace braid::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string head_line(const std::string& kind, const Fingerprint& fingerprint) {
  ordered_json head;
  for (const auto& [name, value] : fingerprint) head[name] = value;
  return ordered_json{{kind, head}}.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void check_head(const json& found, const Fingerprint& expected, const std::string& path, const std::string& advice) {
  for (const auto& [name, value] : expected) {
    const std::string other = found.contains(name) && found[name].is_string() ? found[name].get<std::string>() : "none";
    check(other == value, ErrorKind::setting, [&, &name = name, &value = value] {
      return str(path, " holds results of something else: expected ", name, " = ", detail::preview(value), ", found ",
                 detail::preview(other), "; ", advice);
    });
  }
}

// Returns the bytes of the complete lines.
int64_t read_units(const std::string& path, const std::string& kind, const Fingerprint& fingerprint,
                   const std::string& advice, const Journal::Take& take) {
  if (!io::exists(path)) return 0;
  int64_t kept = 0;
  for (LineReader lines(path); lines.next() && lines.complete(); kept = lines.end()) {
    const json object = parse_json(lines.text(), path, lines.begin());
    std::string expected;
    if (lines.number() > 1) {
      expected = take(object);
    } else if (object.is_object() && object.contains(kind) && object[kind].is_object()) {
      check_head(object[kind], fingerprint, path, advice);
    } else {
      expected = "the head of a file of results";
    }
    check(expected.empty(), ErrorKind::input, [&] {
      return str("bad line ", lines.number(), " in ", path, ": expected ", expected, ", found ",
                 detail::preview(lines.text()), "; ", advice);
    });
  }
  return kept;
}

}  // namespace

Journal::Journal(const std::string& path, const std::string& kind, const Fingerprint& fingerprint,
                 const std::string& advice, const Take& take)
    : head_(head_line(kind, fingerprint)) {
  const int64_t kept = read_units(path, kind, fingerprint, advice, take);
  file_.emplace(path, kept);
  if (kept == 0) file_->append(head_);
}

void Journal::add(std::string_view unit) { file_->append(str(unit, "\n")); }

}  // namespace braid::io
