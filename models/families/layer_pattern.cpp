#include "braid/models/families/layer_pattern.h"

#include <charconv>

#include "braid/models/families/family_settings.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

constexpr int64_t kMaxLayers = 1 << 14;

std::optional<int64_t> number(std::string_view text, int64_t least) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && n >= least && n < kMaxLayers ? std::optional(n) : std::nullopt;
}

bool is_pattern(const std::string& text) {
  for (const char* name : {"all", "even", "odd", "local", "global"})
    if (text == name) return true;
  for (const char* end : {"first:", "last:"})
    if (text.starts_with(end))
      return number(std::string_view(text).substr(std::string_view(end).size()), 1).has_value();
  return listed_layers(text).has_value();
}

}  // namespace

std::optional<std::vector<int64_t>> listed_layers(const std::string& pattern) {
  std::vector<int64_t> layers;
  for (const std::string& part : detail::split(pattern, ',')) {
    const std::optional<int64_t> layer = number(detail::trim(part), 0);
    if (!layer || (!layers.empty() && *layer <= layers.back())) return std::nullopt;
    layers.push_back(*layer);
  }
  return layers;
}

ValueRule layer_pattern_rule() {
  return {.accepts = is_pattern,
          .condition = "all, even, odd, local, global, first:N, last:N, or ascending numbers from 0 as 1,3,5"};
}

std::vector<bool> layers_of(const std::string& setting, const std::string& pattern,
                            const std::vector<int64_t>& windows) {
  const auto layers = static_cast<int64_t>(windows.size());
  std::vector<bool> of(windows.size(), pattern == "all");
  const auto within = [&](int64_t needed) {
    need_setting(needed <= layers, setting, str("layers of the model's ", layers), pattern);
  };
  const size_t colon = pattern.find(':');
  if (colon != std::string::npos) {
    const int64_t count = number(std::string_view(pattern).substr(colon + 1), 1).value();
    within(count);
    const int64_t first = pattern.starts_with("first") ? 0 : layers - count;
    for (int64_t i = first; i < first + count; ++i) of[static_cast<size_t>(i)] = true;
  } else if (const std::optional<std::vector<int64_t>> list = listed_layers(pattern)) {
    for (const int64_t i : *list) {
      within(i + 1);
      of[static_cast<size_t>(i)] = true;
    }
  } else {
    for (size_t i = 0; i < of.size(); ++i)
      of[i] = of[i] || (pattern == "even" && i % 2 == 0) || (pattern == "odd" && i % 2 == 1) ||
              (pattern == "local" && windows[i] > 0) || (pattern == "global" && windows[i] == 0);
  }
  return of;
}

}  // namespace braid::models
