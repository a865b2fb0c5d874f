#include "braid/models/dcformer/model_types.h"

#include <algorithm>

#include "braid/tensor/error.h"

namespace braid::models {
namespace {

// The vocabulary of the published JAX configurations is 50256, that of the published folders 50257.
constexpr PresetSize dcformer_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},  // bytes and two special tokens: tests and the demo
    {"small", 12, 768, 12, 2048, 50256},
    {"405m", 24, 1024, 16, 2048, 50256},
    // The authors publish no configuration of these two; the shapes follow the names: their Transformer++
    // has 833.9M and 1438.8M parameters, with heads of 64 as at 405M.
    {"834m", 24, 1536, 24, 2048, 50256},
    {"1.4b", 24, 2048, 32, 2048, 50256},
    {"2.8b", 32, 2560, 32, 2048, 50256},
    {"8b", 48, 4096, 32, 4096, 152064},
};
constexpr PresetSize pythia_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},
    {"6.9b", 32, 4096, 32, 2048, 50257},
};

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> table = {
      {"dcformer", "DCFormer", {}, "dcformer", "transformer", dcformer_sizes},
      {"dcpythia",
       "DCPythia",
       {{"norm", "layer"},
        {"ffn", "gelu"},
        {"use_linear_bias", "true"},
        {"use_parallel_residual", "true"},
        {"rotary_pct", "0.25"}},
       "dcpythia",
       "pythia",
       pythia_sizes},
  };
  return table;
}

const ModelType& model_type_named(const std::string& name) {
  const auto& types = model_types();
  const auto at = std::find_if(types.begin(), types.end(), [&](const ModelType& type) { return type.name == name; });
  check(at != types.end(), ErrorKind::misuse, [&] { return "no model type '" + name + "' of DCFormer's family"; });
  return *at;
}

std::vector<std::string> model_type_names() {
  std::vector<std::string> names;
  for (const ModelType& type : model_types()) names.push_back(type.name);
  return names;
}

}  // namespace braid::models
