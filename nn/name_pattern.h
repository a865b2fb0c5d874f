// Parameters and layers chosen by patterns of their names, for settings: "layers.*.attention.wqkv.weight".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace braid::nn {

// `*` stands for any characters (also dots, also none), `?` for one character; the pattern covers the complete name.
bool matches(std::string_view pattern, std::string_view name);
// Error(setting) when the pattern matches none of the names; it lists the nearest ones, layers with other indices once.
// what: "optimizer.groups", the setting that has the pattern.
void check_pattern(const std::string& what, const std::string& pattern, const std::vector<std::string>& names);

// The name with `*` for the layer's index: layers.3.wo.weight -> layers.*.wo.weight.
std::string without_indices(const std::string& name);

}  // namespace braid::nn
