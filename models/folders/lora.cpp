#include "braid/models/folders/lora.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "braid/models/model_spec.h"
#include "braid/nn/name_pattern.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

bool is_lora(const std::string& parameter) {
  return parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight");
}

std::vector<LinearLayer> lora_candidates(Model& model) {
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  const Folder folder = spec->folder();
  std::vector<LinearLayer> layers;
  nn::each_module(model, [&](const std::string& name, nn::Module& module) {
    auto* linear = dynamic_cast<nn::Linear*>(&module);
    // Without weight: the output projection of a model that uses its embedding in the place of one.
    if (!linear || !linear->takes_lora() || !linear->weight()) return;
    Shape shape = linear->weight().shape();
    if (const dist::Shard* shard = model.shard_of(name + ".weight")) shape[shard->axis] = shard->partition.total();
    const StoredParameter stored = folder.stored(name + ".weight", shape);
    const std::string& whole = stored.tensors[0].name;
    layers.push_back({name, linear, shape, stored.tensors.size() == 1 ? whole.substr(0, whole.rfind(".weight")) : "",
                      folder.parts(name, shape[0])});
  });
  return layers;
}

void set_pairs(Model& model, const LinearLayer& layer, const std::vector<LoraPair>& pairs, double alpha,
               const dist::ProcessMesh& mesh) {
  const Tensor& weight = layer.layer->weight();
  std::vector<nn::Linear::LoraPair> own;
  for (const LoraPair& pair : pairs) {
    std::string name = layer.name;
    int64_t first = 0;
    if (!pair.part.empty()) {
      name += "." + pair.part;
      const dist::Range rows = std::ranges::find(layer.parts, pair.part, &Folder::Part::name)->rows;
      first = rows.begin;
      if (const dist::Shard* shard = model.shard_of(layer.name + ".weight")) {
        dist::Shard part{0, {}};
        for (const dist::Ranges& held : shard->partition.ranges) {
          part.partition.ranges.emplace_back();
          for (const dist::Range& r : dist::intersect(held, {rows}))
            part.partition.ranges.back().push_back({r.begin - rows.begin, r.end - rows.begin});
        }
        first = dist::entries(dist::intersect(shard->partition.of(mesh.tensor.rank()), {{0, rows.begin}}));
        model.set_shard(name + ".weight", part);
      }
    }
    const auto shard = [&](const char* matrix, const Tensor& x) {
      return model.shard(name + matrix, x, mesh.tensor.rank()).to(weight.dtype()).to(weight.device());
    };
    own.push_back({pair.part, first, shard(".lora_A.weight", pair.a), shard(".lora_B.weight", pair.b)});
  }
  layer.layer->set_lora(std::move(own), alpha);
}

namespace {

bool targeted(const std::vector<std::string>& targets, const std::string& name) {
  return std::ranges::any_of(targets, [&](const std::string& target) {
    return !name.empty() && (nn::matches(target, name) || nn::matches("*." + target, name));
  });
}

// Error(setting) unless every target matches a layer.
void check_targets(const LoraOptions& options, const std::vector<LinearLayer>& layers) {
  std::set<std::string> names, files;  // files: the last part of names on disk
  const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  for (const LinearLayer& l : layers) {
    names.insert(nn::without_indices(l.name));
    if (!l.stored.empty()) files.insert(last(l.stored));
    for (const Folder::Part& part : l.parts) files.insert(last(part.stored));
  }
  for (const std::string& target : options.targets) {
    const bool any = std::ranges::any_of(layers, [&](const LinearLayer& l) {
      return targeted({target}, l.name) || targeted({target}, l.stored) ||
             std::ranges::any_of(l.parts, [&](const auto& part) {
               return targeted({target}, l.name + "." + part.name) || targeted({target}, part.stored);
             });
    });
    check(any, ErrorKind::setting, [&] {
      const std::vector<std::string> known(files.begin(), files.end());
      return "lora.targets: no linear layer that can have LoRA is called '" + detail::preview(target) + "'" +
             detail::did_you_mean(target, known) + "; their names are " +
             detail::join({names.begin(), names.end()}, ", ") + ", in files " + detail::join(known, ", ") +
             " (* stands for any characters; the output projection has none)";
    });
  }
}

}  // namespace

void add_lora(Model& model, const LoraOptions& options, RandomKey key, const dist::ProcessMesh& mesh) {
  const std::vector<LinearLayer> layers = lora_candidates(model);
  check_targets(options, layers);
  for (const LinearLayer& l : layers) {
    std::vector<LoraPair> pairs;
    const auto add = [&](const std::string& part, const std::string& name, int64_t outputs) {
      const auto make = [&](const char* matrix, const nn::Init& init, const Shape& shape) {
        return init.make(shape, child(child(key, name.c_str()), matrix));
      };
      const double deviation = 1 / std::sqrt(3 * static_cast<double>(l.shape[1]));
      pairs.push_back({part, make("lora_A", nn::Init::normal(deviation), {options.rank, l.shape[1]}),
                       make("lora_B", nn::Init::constant(0), {outputs, options.rank})});
    };
    if (targeted(options.targets, l.name) || targeted(options.targets, l.stored)) {
      add("", l.name, l.shape[0]);
    } else {
      for (const Folder::Part& part : l.parts) {
        const std::string name = l.name + "." + part.name;
        if (targeted(options.targets, name) || targeted(options.targets, part.stored))
          add(part.name, name, part.rows.size());
      }
    }
    if (!pairs.empty()) set_pairs(model, l, pairs, options.alpha, mesh);
  }
}

void merge_lora(Model& model) {
  for (const LinearLayer& l : lora_candidates(model)) l.layer->merge_lora();
}

std::optional<LoraOptions> lora_of(Model& model) {
  LoraOptions found{.rank = 0, .targets = {}};
  for (const LinearLayer& l : lora_candidates(model)) {
    for (const nn::Linear::LoraPair& pair : l.layer->lora()) {
      found.rank = pair.a.dim(0);
      found.alpha = l.layer->lora_alpha();
      found.targets.push_back(l.name + (pair.part.empty() ? "" : "." + pair.part));
    }
  }
  return found.targets.empty() ? std::nullopt : std::optional(found);
}

}  // namespace braid::models
