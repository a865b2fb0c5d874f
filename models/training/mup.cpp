#include "braid/models/training/mup.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "braid/nn/attention/composition.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/name_pattern.h"
#include "braid/nn/optim/registry.h"
#include "braid/nn/optim/rules/muon.h"

namespace braid::models {

namespace {

// The names of this parameter of all layers of a kind.
template <class Layer>
std::set<std::string> names_of(Model& model, const char* parameter) {
  std::set<std::string> names;
  nn::each_module(model, [&](const std::string& name, nn::Module& module) {
    if (dynamic_cast<const Layer*>(&module)) names.insert(str(name, ".", parameter));
  });
  return names;
}

double growth(const Shape& shape, const Shape& base, int axis) {
  return static_cast<double>(shape[axis]) / static_cast<double>(base[axis]);
}

}  // namespace

std::vector<nn::ParameterGroup> with_mup_rates(const ModelSpec& spec, const ModelSpec& base,
                                               const nn::OptimizerOptions& options) {
  const std::unique_ptr<Model> wide = spec.make_shape_only();
  const std::set<std::string> linear = names_of<nn::Linear>(*wide, "weight"),
                              mixing = names_of<nn::CompositionWeights>(*wide, "qkw");
  // What maps no hidden vector to another is an input, unless it is multiplied by hidden vectors: output projections,
  // and the queries of connections over depth.
  const auto is_input = [&, maps_none = wide->elementwise_parameters()](const std::string& name) {
    return !linear.contains(name) && name != "depth.queries" &&
           std::ranges::any_of(maps_none, [&](const std::string& pattern) { return nn::matches(pattern, name); });
  };
  const std::vector<nn::NamedTensor> parameters = nn::parameters(*wide), narrow = base.parameters();
  check(parameters.size() == narrow.size(), "mup", "the model and its base differ in more than their widths");
  std::vector<nn::ParameterGroup> groups = options.groups;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, value] = parameters[i];
    const Shape &now = value.shape(), &then = narrow[i].value.shape();
    if (now.rank() < 2 || is_input(name)) continue;
    // The weight of a linear layer is (out, in). Others are (in, ..., out), beside axes that do not grow.
    int in = linear.contains(name) ? 1 : 0;
    while (in + 1 < now.rank() && now[in] == then[in]) ++in;
    double factor = 1 / growth(now, then, in);
    if (mixing.contains(name)) factor /= growth(now, then, now.rank() - 1);
    if (nn::takes_as_matrix(options, parameters[i])) {
      const auto scale = [&](const Shape& s) { return nn::muon_scale(options.muon.scale, s[0], s[1]); };
      factor = std::sqrt(growth(now, then, 0) / growth(now, then, 1)) * scale(then) / scale(now);
    }
    if (factor != 1) groups.push_back({.pattern = name, .lr = factor * nn::rule_of(options.groups, name).lr});
  }
  return groups;
}

}  // namespace braid::models
