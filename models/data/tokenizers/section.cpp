#include "braid/models/data/tokenizers/section.h"

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

using nlohmann::json;

namespace {
const json null;
std::string short_text(const json& value) {
  return detail::preview(value.dump(-1, ' ', true, json::error_handler_t::replace));
}
}  // namespace

std::string Section::path(const std::string& key) const {
  if (name_.empty()) return key;
  return key.empty() ? name_ : name_ + "." + key;
}

Section Section::at(const char* key) const { return {has(key) ? value_->at(key) : null, file_, path(key)}; }

std::vector<Section> Section::list(const char* key) const {
  const Section items = at(key);
  if (!items.value().is_array()) fail(key, "a list");
  std::vector<Section> result;
  for (size_t i = 0; i < items.value().size(); ++i)
    result.emplace_back(items.value()[i], file_, str(items.name_, "[", i, "]"));
  return result;
}

std::string Section::type() const {
  if (!value_->is_object()) fail("", "an object with a type");
  return text("type");
}

std::string Section::text(const char* key) const {
  if (!has(key) || !value_->at(key).is_string()) fail(key, "a text");
  return value_->at(key).get<std::string>();
}

std::string Section::text(const char* key, const char* otherwise) const { return has(key) ? text(key) : otherwise; }

bool Section::flag(const char* key) const {
  if (!has(key) || !value_->at(key).is_boolean()) fail(key, "true or false");
  return value_->at(key).get<bool>();
}

bool Section::flag(const char* key, bool otherwise) const { return has(key) ? flag(key) : otherwise; }

int64_t Section::integer(const char* key, int64_t least, int64_t max) const {
  const std::string expected = str("an integer from ", least, " to ", max);
  if (!has(key) || !value_->at(key).is_number_integer()) fail(key, expected);
  const json& value = value_->at(key);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(max)) fail(key, expected);
  const auto number = value.get<int64_t>();
  if (number < least || number > max) fail(key, expected);
  return number;
}

void Section::fail(const std::string& key, const std::string& expected, const std::string& found) const {
  braid::fail(ErrorKind::input, "bad tokenizer in " + file_ + ": " + (path(key).empty() ? "" : path(key) + ": ") +
                                    "expected " + expected + ", found " + found);
}

void Section::fail(const std::string& key, const std::string& expected) const {
  const json& found = key.empty() ? *value_ : at(key.c_str()).value();
  fail(key, expected, found.is_null() ? "nothing" : short_text(found));
}

void Section::unsupported(const std::string& what) const {
  braid::fail(ErrorKind::input,
              "unsupported tokenizer in " + file_ + ": " + (name_.empty() ? "" : name_ + ": ") + what);
}

}  // namespace braid::models::text
