// A part of a tokenizer.json with its place, so that every error names the file and the field.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace braid::models::text {

class Section {
 public:
  // `file` and `name` are for messages; `value` must outlive the section.
  Section(const nlohmann::json& value, std::string file, std::string name)
      : value_(&value), file_(std::move(file)), name_(std::move(name)) {}

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }
  const std::string& file() const { return file_; }
  std::string where() const { return file_ + (name_.empty() ? "" : ", " + name_); }

  bool has(const char* key) const { return value_->is_object() && value_->contains(key) && !value_->at(key).is_null(); }
  Section at(const char* key) const;                 // null where it is missing
  std::vector<Section> list(const char* key) const;  // Error(input) unless it is a list
  std::string type() const;                          // of an object: its "type"

  std::string text(const char* key) const;  // required
  std::string text(const char* key, const char* otherwise) const;
  bool flag(const char* key) const;  // required
  bool flag(const char* key, bool otherwise) const;
  int64_t integer(const char* key, int64_t least, int64_t max) const;  // required

  // "bad tokenizer in FILE: NAME.KEY: expected .., found .."
  [[noreturn]] void fail(const std::string& key, const std::string& expected, const std::string& found) const;
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;  // found: the value there
  // "unsupported tokenizer in FILE: NAME: .."
  [[noreturn]] void unsupported(const std::string& what) const;

 private:
  std::string path(const std::string& key) const;
  const nlohmann::json* value_;
  std::string file_, name_;
};

}  // namespace braid::models::text
