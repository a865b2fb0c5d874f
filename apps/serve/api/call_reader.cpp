#include "apps/serve/api/call_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"

namespace braid::apps::serve {
namespace {

// Where a pattern, or at the end of the text its beginning, begins first.
size_t first_place(const std::string& text, const std::string& pattern) {
  if (const size_t at = text.find(pattern); at != std::string::npos) return at;
  for (size_t n = std::min(pattern.size() - 1, text.size()); n > 0; --n)
    if (text.compare(text.size() - n, n, pattern, 0, n) == 0) return text.size() - n;
  return std::string::npos;
}

}  // namespace

std::string CallReader::push(const std::string& more, std::vector<CallPart>& calls) {
  if (stopped_) return "";
  held_ += more;
  std::string text;
  for (bool continues = true; continues && !stopped_;) {
    switch (at_) {
      case At::text:
        text += read_text(false);
        continues = at_ != At::text;
        break;
      case At::head:
        continues = read_head(calls);
        break;
      case At::arguments:
        continues = read_arguments(calls);
        break;
      case At::tail:
        continues = skip_past(settings_.marks.end, At::between);
        complete_ += continues;
        break;
      case At::between:
        continues = skip_past(settings_.marks.begin, At::head);
    }
  }
  return text;
}

std::string CallReader::finish() { return at_ == At::text && !stopped_ ? read_text(true) : ""; }

// The first of the mark and the stop strings ends the text; what may become one of them is held back.
std::string CallReader::read_text(bool last) {
  size_t end = held_.size();
  const std::string* found = nullptr;
  const auto look = [&](const std::string& pattern) {
    const size_t place = first_place(held_, pattern);
    if (place >= end) return;
    const bool whole = held_.compare(place, pattern.size(), pattern) == 0;
    if (!whole && last) return;
    end = place;
    found = whole ? &pattern : nullptr;
  };
  look(settings_.marks.begin);
  for (const std::string& stop : settings_.stops) look(stop);
  std::string text = held_.substr(0, end);
  held_.erase(0, end);
  if (!found) return text;
  stopped_ = found != &settings_.marks.begin;
  if (!stopped_) held_.erase(0, found->size()), at_ = At::head;
  return text;
}

// Up to the arguments. A name has neither quotes nor commas.
bool CallReader::read_head(std::vector<CallPart>& calls) {
  const std::string key = "\"arguments\"";
  const size_t comma = held_.find(','), place = comma == std::string::npos ? comma : held_.find(key, comma);
  const size_t colon = place == std::string::npos ? place : held_.find(':', place + key.size());
  const size_t begin = colon == std::string::npos ? colon : held_.find_first_not_of(" \t\n", colon + 1);
  if (begin == std::string::npos) return false;
  const std::string name = nlohmann::json::parse(held_.substr(0, comma) + "}").at("name").get<std::string>();
  calls.push_back({begun_, settings_.id + detail::hex(static_cast<uint64_t>(begun_), 4), name, ""});
  ++begun_;
  held_.erase(0, begin);
  at_ = At::arguments, depth_ = 0, in_string_ = escaped_ = false;
  return true;
}

bool CallReader::read_arguments(std::vector<CallPart>& calls) {
  size_t n = 0;
  for (bool open = true; open && n < held_.size(); ++n) {
    const char c = held_[n];
    if (escaped_)
      escaped_ = false;
    else if (in_string_)
      escaped_ = c == '\\', in_string_ = c != '"';
    else if (c == '"')
      in_string_ = true;
    else if (c == '{' || c == '[')
      ++depth_;
    else if (c == '}' || c == ']')
      open = --depth_ > 0;
    if (!open) at_ = At::tail;
  }
  if (n > 0) {
    if (calls.empty() || calls.back().index != begun_ - 1) calls.push_back({.index = begun_ - 1});
    calls.back().arguments += held_.substr(0, n);
  }
  held_.erase(0, n);
  return at_ == At::tail;
}

bool CallReader::skip_past(const std::string& mark, At next) {
  const size_t place = held_.find(mark);
  if (place == std::string::npos) return false;
  held_.erase(0, place + mark.size());
  at_ = next;
  return true;
}

}  // namespace braid::apps::serve
