#include "braid/tensor/base/strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::detail {

std::string shortest(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

std::string decimal(double value) {
  const bool whole = std::fabs(value) < 1e18 && value == std::floor(value);
  return whole ? std::to_string(static_cast<int64_t>(value)) : shortest(value);
}

std::string hex(uint64_t value, int digits) {
  char text[17];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

std::string mebibytes(int64_t bytes) { return str(ceil_div(bytes, 1 << 20), " MiB"); }

template <class T>
static std::optional<T> parse_number(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_int(std::string_view text) { return parse_number<int64_t>(text); }
std::optional<double> parse_float(std::string_view text) { return parse_number<double>(text); }

int edit_distance(std::string_view a, std::string_view b) {
  const size_t n = b.size();
  std::vector<int> before(n + 1), row(n + 1), next(n + 1);
  for (size_t j = 0; j <= n; ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = static_cast<int>(i);
    for (size_t j = 1; j <= n; ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[n];
}

static std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// How far a person who typed `name` was from the candidate: edits, or edits of the last word in another section. `lr`,
// `train.lr` for `optimizer.lr`: 1.
static int distance_between(std::string_view name, std::string_view candidate) {
  const int edits = edit_distance(name, candidate);
  if (last_word(name) == name && last_word(candidate) == candidate) return edits;
  const std::string_view word = last_word(name);
  const int of_word = edit_distance(word, last_word(candidate));
  return of_word <= static_cast<int>(word.size()) / 4 ? std::min(edits, 1 + of_word) : edits;
}

// The nearest candidates, several only at distance 1, in their order.
static std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t longest = 100;  // nobody mistypes a name of this length; keeps hostile input cheap
  if (name.empty() || name.size() > longest) return {};
  std::vector<std::string> best;
  int best_distance = 1 + static_cast<int>(name.size()) / 3 + 1;
  for (const std::string& candidate : candidates) {
    const int distance = distance_between(name, candidate);
    if (std::find(best.begin(), best.end(), candidate) != best.end()) continue;
    if (distance < best_distance) best.clear();
    if (distance < best_distance || (distance == 1 && best_distance == 1)) best.push_back(candidate);
    best_distance = std::min(best_distance, distance);
  }
  return best;
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> names = nearest_names(name, candidates);
  return names.empty() ? "" : names.front();
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  if (std::ranges::find(candidates, name) != candidates.end()) return "";  // something else is wrong with it
  std::vector<std::string> names = nearest_names(name, candidates);
  const auto same_word = [&](const std::string& other) { return last_word(other) == last_word(names.front()); };
  const auto different = std::stable_partition(names.begin(), names.end(), same_word);
  names.erase(different, names.end());
  if (names.empty()) return "";
  if (names.size() > 4) names.resize(4);
  const std::string last = names.back();
  names.pop_back();
  return "; did you mean '" + (names.empty() ? "" : join(names, "', '") + "' or '") + last + "'?";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text.append(i ? separator : "").append(parts[i]);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::string preview(std::string_view text, size_t width) {
  std::string shown(text.substr(0, width));
  // Do not cut a UTF-8 character in two.
  while (shown.size() < text.size() && !shown.empty() &&
         (static_cast<unsigned char>(text[shown.size()]) & 0xC0) == 0x80)
    shown.pop_back();
  const bool text_ok = valid_utf8(shown);
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !text_ok)) c = '?';
  }
  return shown.size() < text.size() ? shown + "..." : shown;
}

}  // namespace braid::detail
