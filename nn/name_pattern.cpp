#include "braid/nn/name_pattern.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::nn {

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, after = 0;  // the last star, and the name behind what it covers
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {  // the star covers one character more
      p = star + 1;
      n = ++after;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string without_indices(const std::string& name) {
  std::vector<std::string> parts = braid::detail::split(name, '.');
  for (std::string& part : parts) {
    if (!part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; })) part = "*";
  }
  return braid::detail::join(parts, ".");
}

namespace {

// The edit distance to the nearest end of the name that begins at one of its words.
int distance(std::string_view pattern, std::string_view name) {
  int least = braid::detail::edit_distance(pattern, name);
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
    least = std::min(least, braid::detail::edit_distance(pattern, name.substr(dot + 1)));
  return least;
}

}  // namespace

void check_pattern(const std::string& what, const std::string& pattern, const std::vector<std::string>& names) {
  if (std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); })) return;
  constexpr size_t kListed = 5;
  std::string_view core = pattern;  // without the stars at its ends
  while (!core.empty() && (core.front() == '*' || core.front() == '.')) core.remove_prefix(1);
  while (!core.empty() && (core.back() == '*' || core.back() == '.')) core.remove_suffix(1);
  std::map<std::string, int> distances;
  for (const std::string& name : names) {
    const std::string kind = without_indices(name);
    if (!distances.contains(kind)) distances[kind] = distance(core, kind);
  }
  std::vector<std::pair<int, std::string>> near;
  for (const auto& [kind, d] : distances) near.emplace_back(d, kind);
  std::ranges::sort(near);
  std::vector<std::string> listed;
  for (size_t i = 0; i < near.size() && i < kListed; ++i) listed.push_back(near[i].second);
  fail(ErrorKind::setting, what + ": no name matches '" + braid::detail::preview(pattern) + "'; the nearest are " +
                               braid::detail::join(listed, ", ") + " (* stands for any characters)");
}

}  // namespace braid::nn
