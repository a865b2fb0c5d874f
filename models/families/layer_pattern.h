// Some layers of a model, as a setting names them: "all", "even", "odd" (from 0), "first:2", "last:2", "local" and
// "global" (with and without a window), or a list as "1,3,5".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/settings.h"

namespace braid::models {

ValueRule layer_pattern_rule();
// The layers of a pattern that is a list, ascending; none for the other patterns.
std::optional<std::vector<int64_t>> listed_layers(const std::string& pattern);
// Whether each of the layers belongs to the pattern, which the rule allows; windows: of each layer, 0 = none.
// Error(setting) names `setting` where the pattern reaches beyond the layers.
std::vector<bool> layers_of(const std::string& setting, const std::string& pattern,
                            const std::vector<int64_t>& windows);

}  // namespace braid::models
