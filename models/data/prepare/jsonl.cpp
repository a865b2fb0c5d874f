#include "braid/models/data/prepare/jsonl.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models::text {
namespace {

using nlohmann::json;

// Listens to the parser and keeps nothing but the one string: no tree is built.
class FieldListener : public json::json_sax_t {
 public:
  explicit FieldListener(const std::string& field) : field_(field) {}

  std::string text;
  bool found = false;
  std::string problem;
  std::vector<std::string> text_fields;  // the first other fields that hold strings

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("binary data"); }
  bool string(string_t& s) override {
    if (!wanted_) {
      if (depth_ == 1 && text_fields.size() < 8) text_fields.push_back(key_);
      return value("a string");
    }
    wanted_ = false;
    found = true;
    text = std::move(s);
    return true;
  }
  bool start_object(size_t) override { return value("an object") && open(); }
  bool start_array(size_t) override { return value("an array") && open(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == field_;
    if (depth_ == 1 && !found && text_fields.size() < 8) key_ = name;
    if (wanted_ && found) return stop("the field \"" + field_ + "\" once, found it twice");
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& e) override {
    std::string cause = e.what();
    if (const size_t at = cause.rfind(": "); at != std::string::npos) cause = cause.substr(at + 2);
    // Quoting the line itself could put anything on a terminal: only printable ASCII is passed on.
    for (char& c : cause)
      if (c < 0x20 || c > 0x7E) c = '?';
    return stop(str("JSON, found a mistake at column ", byte, " (", cause.substr(0, 200), ")"));
  }

 private:
  bool stop(std::string message) {
    if (problem.empty()) problem = std::move(message);
    return false;
  }
  // Any value but the string we look for.
  bool value(const char* kind) {
    if (wanted_) return stop("a string in the field \"" + field_ + "\", found " + kind);
    if (depth_ == 0 && std::string_view(kind) != "an object") return stop(str("a JSON object, found ", kind));
    return true;
  }
  bool open() {
    if (++depth_ > io::max_json_depth) return stop("at most 64 nested levels, found more");
    return true;
  }

  const std::string& field_;
  int depth_ = 0;
  std::string key_;      // the last one of the object
  bool wanted_ = false;  // the next value is the field's
};

}  // namespace

bool has_text_field(std::string_view object, const std::string& field) {
  FieldListener listener(field);
  const std::string finite = io::finite_json(object).text;
  json::sax_parse(finite.begin(), finite.end(), &listener);
  return listener.found;
}

std::string jsonl_text(std::string_view line, const std::string& field, const std::string& path, int64_t line_number) {
  FieldListener listener(field);
  bool ok = false;
  const size_t nul = line.find('\0');  // which the parser would take for the end of the line
  if (nul != std::string_view::npos) {
    listener.problem = str("JSON, found a NUL byte at column ", nul + 1);
  } else {
    try {
      const std::string finite = io::finite_json(line).text;
      ok = json::sax_parse(finite.begin(), finite.end(), &listener);
    } catch (const json::exception& e) {
      listener.problem = str("JSON, found: ", e.what());
    }
  }
  std::string advice = "correct the line or remove it";
  if (ok && !listener.found) {
    listener.problem = "a field \"" + field + "\" that holds the document, found none";
    std::string others;
    for (const std::string& name : listener.text_fields)
      others += (others.empty() ? "\"" : ", \"") + detail::preview(name) + "\"";
    if (!others.empty()) {
      listener.problem += " but text in " + others;
      advice = "name the field with `text_field` " + detail::preview(listener.text_fields[0]) + ", or correct the line";
    }
  }
  if (!ok || !listener.found)
    fail(ErrorKind::input,
         str("cannot read ", path, " at line ", line_number, ": expected ", listener.problem, "; ", advice));
  return std::move(listener.text);
}

}  // namespace braid::models::text
