#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "braid/models/families/dcformer/config.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/model_types.h"
#include "braid/tensor/error.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(presets)

BOOST_AUTO_TEST_CASE(every_named_preset_is_valid) {
  const std::vector<std::string> names = preset_names();
  size_t expected = 0;  // each size of each model type, and its baseline
  for (const ModelType& type : model_types()) expected += (type.baseline.empty() ? 1 : 2) * type.sizes.size();
  for (const char* size : {"tiny", "small", "405m", "834m", "1.4b", "2.8b", "8b"}) {
    for (const char* family : {"dcformer-", "transformer-"})
      BOOST_TEST((std::find(names.begin(), names.end(), std::string(family) + size) != names.end()), size);
  }
  for (const char* name : {"dcpythia-tiny", "dcpythia-6.9b", "pythia-tiny", "pythia-6.9b"})
    BOOST_TEST((std::find(names.begin(), names.end(), name) != names.end()), name);
  BOOST_TEST(names.size() == expected);
  for (const std::string& name : names) BOOST_TEST(count_parameters(configure(name, {})).total > 0, name);
}

BOOST_AUTO_TEST_CASE(baselines_have_the_shape_of_their_model) {
  for (const ModelType& type : model_types()) {
    if (type.baseline.empty()) continue;
    for (const PresetSize& size : type.sizes) {
      const std::string name = preset_name(type, size);
      const DcformerConfig a = configure(name, {}), b = configure(preset_name(type, size, true), {});
      BOOST_TEST((a.dim == b.dim && a.n_layer == b.n_layer && a.n_head == b.n_head && a.block_size == b.block_size));
      BOOST_TEST((a.intermediate_size == b.intermediate_size && a.norm == b.norm && a.ffn == b.ffn), name);
      BOOST_TEST((a.use_dcmha && a.use_qk_norm && !b.use_dcmha && !b.use_qk_norm));
      BOOST_TEST((b.layer_windows == std::vector<int64_t>(static_cast<size_t>(b.n_layer), 0)), name);
      BOOST_TEST(a.layer_windows[0] == 256);
    }
  }
}

BOOST_AUTO_TEST_CASE(published_values) {
  const DcformerConfig small = configure("dcformer-405m", {});
  BOOST_TEST((small.profile == Profile()));  // the training code: tanh, 1e-5, W keys
  BOOST_TEST((small.intermediate_size == 2816 && small.head_dim == 64 && small.vocab_size == 50256));
  BOOST_TEST(small.norm_eps == 1e-5);

  const DcformerConfig large = configure("dcformer-2.8b", {});
  BOOST_TEST((large.intermediate_size == 6912 && large.head_dim == 80 && large.vocab_size == 50257));
  BOOST_TEST((large.norm_eps == 1e-6 && large.profile.qk_norm_eps == 1e-6 && large.profile.gelu == Gelu::erf));
  BOOST_TEST((large.profile.window_plus_one && !large.profile.decode_window_plus_one));

  const DcformerConfig gated = configure("dcformer-8b", {});
  BOOST_TEST((gated.mgate && gated.mgate_dim == 44 && gated.intermediate_size == 5632 && gated.rope_base == 5e5));
  BOOST_TEST((gated.layer_windows[1] == 0 && gated.layer_windows[2] == 256 && gated.layer_windows[3] == 256));
  BOOST_TEST(gated.block_size == 4096);

  const DcformerConfig pythia = configure("dcpythia-6.9b", {});
  BOOST_TEST((pythia.intermediate_size == 16384 && pythia.rotary_dims() == 32 && pythia.use_parallel_residual));
  BOOST_TEST((pythia.norm == NormKind::layer && pythia.eos_token_id == 0));

  const DcformerConfig tiny = configure("dcformer-tiny", {});
  BOOST_TEST((tiny.n_layer == 4 && tiny.dim == 256 && tiny.n_head == 8 && tiny.block_size == 512));
  BOOST_TEST((tiny.vocab_size == 258 && tiny.intermediate_size == 768));
}

BOOST_AUTO_TEST_CASE(sizes_agree_with_their_names) {
  for (const auto& [name, millions] : {std::pair{"transformer-834m", 834.0}, {"transformer-1.4b", 1400.0}}) {
    const double ratio = static_cast<double>(count_parameters(configure(name, {})).total) / 1e6 / millions;
    BOOST_TEST((ratio > 0.97 && ratio < 1.03), name);
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_preset_names_the_nearest) {
  BOOST_CHECK_EXCEPTION(preset("dcformer-405"), Error, [](const Error& e) {
    const std::string text = e.what();
    return e.kind() == ErrorKind::setting && text.find("did you mean 'dcformer-405m'?") != std::string::npos &&
           text.find("unknown model preset 'dcformer-405'") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
