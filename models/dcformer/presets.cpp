// The named models as data: a table of shapes, a table of families, and what single presets have of their own.
#include <algorithm>

#include "braid/models/dcformer/config.h"
#include "braid/tensor/detail/strings.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

// A size of a family. F is the family's rule unless a preset says otherwise.
struct Size {
  const char* name;
  int64_t n_layer, dim, n_head, block_size, vocab_size;
};

// The vocabulary of the published JAX configurations is 50256, that of the published folders 50257.
constexpr Size dcformer_sizes[] = {
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
constexpr Size pythia_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},
    {"6.9b", 32, 4096, 32, 2048, 50257},
};

// Plain attention over all earlier tokens, as in the baselines of the paper.
const Keys baseline = {{"use_dcmha", "false"}, {"use_qk_norm", "false"}, {"window_size", "null"}};
// Everything not named is the default of DcformerConfig: the published training of DCFormer++ (JAX).
struct Family {
  const char* name;
  const char* model_type;
  bool plain;  // the baseline
};
constexpr Family families[] = {
    {"dcformer", "dcformer", false},
    {"transformer", "dcformer", true},
    {"dcpythia", "dcpythia", false},
    {"pythia", "dcpythia", true},
};

struct Special {
  const char* preset;
  Keys keys;
};
// Later rows win.
const std::vector<Special>& specials() {
  static const std::vector<Special> table = {
      {"dcformer-2.8b", {{"profile.name", "T1"}}},
      {"dcformer-2.8b", {{"vocab_size", "50257"}, {"norm_eps", "1e-6"}, {"bos_token_id", "1"}, {"eos_token_id", "2"}}},
      {"dcpythia-6.9b", {{"profile.name", "T1"}}},
      {"dcpythia-6.9b", {{"bos_token_id", "0"}, {"eos_token_id", "0"}}},
      {"pythia-6.9b", {{"bos_token_id", "0"}, {"eos_token_id", "0"}}},
      // The configuration of the published 8B training: its inference code attends to W keys in prefill and in decode.
      {"dcformer-8b", {{"intermediate_size", "5632"}, {"norm_eps", "1e-6"}, {"rope_base", "500000"}}},
      {"dcformer-8b", {{"mgate", "true"}, {"mgate_dim", "44"}, {"window_type", "LGLL"}, {"init", "pytorch"}}},
      {"dcformer-8b", {{"profile.name", "H-inf"}}},
      {"transformer-8b", {{"intermediate_size", "5632"}, {"norm_eps", "1e-6"}, {"rope_base", "500000"}}},
      {"transformer-8b", {{"init", "pytorch"}}},
  };
  return table;
}

template <class Use>  // use(name, family, size)
void each_preset(Use&& use) {
  for (const Family& family : families) {
    const auto each_size = [&](const auto& sizes) {
      for (const Size& size : sizes) use(std::string(family.name) + "-" + size.name, family, size);
    };
    if (family.model_type == std::string("dcformer"))
      each_size(dcformer_sizes);
    else
      each_size(pythia_sizes);
  }
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  each_preset([&](const std::string& name, const Family&, const Size&) { names.push_back(name); });
  return names;
}

DcformerConfig preset(const std::string& preset_name) {
  DcformerConfig config;
  each_preset([&](const std::string& name, const Family& family, const Size& size) {
    if (name != preset_name) return;
    const auto set_all = [&](const Keys& keys) {
      for (const auto& [key, value] : keys) set_key(config, key, value);
    };
    set_key(config, "model_type", family.model_type);
    config.n_layer = size.n_layer;
    config.dim = size.dim;
    config.n_head = size.n_head;
    config.block_size = size.block_size;
    config.vocab_size = size.vocab_size;
    if (family.plain) set_all(baseline);
    for (const Special& special : specials())
      if (special.preset == name) set_all(special.keys);
  });
  check(config.dim > 0, ErrorKind::setting, [&] {
    const std::vector<std::string> names = preset_names();
    return "unknown model preset '" + detail::preview(preset_name) + "'" + detail::did_you_mean(preset_name, names) +
           " (presets: " + detail::join(names, ", ") + ")";
  });
  return config;
}

}  // namespace braid::models
