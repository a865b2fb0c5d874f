#include "braid/models/folders/lora.h"

#include <algorithm>
#include <cmath>

#include "braid/nn/name_pattern.h"

namespace braid::models {

bool is_lora(const std::string& parameter) {
  return parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight");
}

std::vector<LinearLayer> lora_candidates(Model& model) {
  std::vector<LinearLayer> layers;
  nn::each_module(model, [&](const std::string& name, nn::Module& module) {
    auto* linear = dynamic_cast<nn::Linear*>(&module);
    // Without weight: the output projection of a model that uses its embedding in the place of one.
    if (linear && linear->takes_lora() && linear->weight()) layers.push_back({name, linear});
  });
  return layers;
}

void add_lora(Model& model, const LoraOptions& options, RandomKey key, const dist::ProcessMesh& mesh) {
  const std::vector<LinearLayer> layers = lora_candidates(model);
  std::vector<std::string> names;
  for (const LinearLayer& l : layers) names.push_back(l.name);
  for (const std::string& target : options.targets) nn::check_pattern("lora.targets", target, names);
  for (const LinearLayer& l : layers) {
    const auto matched = [&](const std::string& target) { return nn::matches(target, l.name); };
    if (std::ranges::none_of(options.targets, matched)) continue;
    const Tensor& weight = l.layer->weight();
    Shape shape = weight.shape();  // of the complete weight: (out, in)
    if (const dist::Shard* shard = model.shard_of(l.name + ".weight")) shape[shard->axis] = shard->partition.total();
    const auto make = [&](const char* part, const nn::Init& init, const Shape& complete) {
      const std::string name = l.name + "." + part + ".weight";
      const Tensor x = init.make(complete, child(child(key, l.name.c_str()), part));
      return model.shard(name, x, mesh.tensor.rank()).to(weight.dtype()).to(weight.device());
    };
    const double deviation = 1 / std::sqrt(3 * static_cast<double>(shape[1]));
    l.layer->set_lora(make("lora_A", nn::Init::normal(deviation), {options.rank, shape[1]}),
                      make("lora_B", nn::Init::constant(0), {shape[0], options.rank}), options.alpha);
  }
}

void merge_lora(Model& model) {
  for (const LinearLayer& l : lora_candidates(model)) l.layer->merge_lora();
}

std::optional<LoraOptions> lora_of(Model& model) {
  LoraOptions found{.rank = 0, .targets = {}};
  for (const LinearLayer& l : lora_candidates(model)) {
    if (l.layer->lora_rank() == 0) continue;
    found.rank = l.layer->lora_rank();
    found.alpha = l.layer->lora_alpha();
    found.targets.push_back(l.name);
  }
  return found.targets.empty() ? std::nullopt : std::optional(found);
}

}  // namespace braid::models
