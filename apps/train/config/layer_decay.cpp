#include "apps/train/config/layer_decay.h"

#include <cmath>
#include <string_view>

namespace braid::apps {

namespace {

// "encoder.layers.3" of "encoder.layers.3.attention.wo.weight"; "" outside of the blocks.
std::string block_of(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  if (at == name.npos || (at > 0 && name[at - 1] != '.')) return "";
  return name.substr(0, name.find('.', at + kLayers.size()));
}

}  // namespace

std::vector<double> layer_factors(double decay, const std::vector<std::string>& names) {
  std::vector<int64_t> depths;
  std::string block;
  int64_t depth = 0;
  for (const std::string& name : names) {
    if (const std::string b = block_of(name); !b.empty() && b != block) block = b, ++depth;
    depths.push_back(depth);
  }
  const int64_t end = depth + 1;
  for (size_t i = names.size(); i-- > 0 && block_of(names[i]).empty();) depths[i] = end;
  std::vector<double> factors;
  for (const int64_t d : depths) factors.push_back(std::pow(decay, static_cast<double>(end - d)));
  return factors;
}

std::vector<nn::ParameterGroup> with_layer_decay(std::vector<nn::ParameterGroup> groups, double decay,
                                                 const std::vector<std::string>& names) {
  if (decay == 1) return groups;
  const std::vector<double> factors = layer_factors(decay, names);
  std::vector<nn::ParameterGroup> all = groups;
  for (size_t i = 0; i < names.size(); ++i)
    all.push_back({.pattern = names[i], .lr = factors[i] * nn::rule_of(groups, names[i]).lr});
  return all;
}

}  // namespace braid::apps
