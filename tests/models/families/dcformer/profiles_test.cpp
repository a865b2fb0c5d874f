// The named profiles, and that each thing they fix changes what a model computes.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/tensor/io/atomic_file.h"
#include "tests/models/folders/support.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(profiles)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;
const std::string kFolder = source_dir() + "/tests/golden/model_dcformer_lg";

models::Dcformer model(const Keys& keys) {
  models::LoadedModel loaded = models::load_model(kFolder, {.dtype = DType::f64, .settings = keys});
  return std::move(dcformer(loaded));
}

// Logits of the tokens after a prompt of 12, one token at a time.
Tensor decoded(const models::Dcformer& m) {
  NoGrad off;
  models::KvCache cache = m.make_cache(20);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < 9; ++i) {
    std::vector<int64_t> ids(i == 0 ? 12 : 1, 3 + i);
    const Tensor h = m.hidden(from_vector(ids, {1, static_cast<int64_t>(ids.size())}), &cache);
    if (i > 0) rows.push_back(m.logits(h));
  }
  return concat(rows, 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(names_and_values) {
  BOOST_TEST(models::profile_names() == (std::vector<std::string>{"J", "T1", "H-train", "H-inf"}),
             boost::test_tools::per_element());
  const auto named = [](const char* name) { return models::configure("dcformer-tiny", {{"profile.name", name}}); };
  for (const std::string& name : models::profile_names()) BOOST_TEST(models::profile_name(named(name.c_str())) == name);
  const models::Profile j = named("J").profile, t = named("T1").profile, train = named("H-train").profile,
                        inference = named("H-inf").profile;
  BOOST_TEST((j == models::Profile()));
  BOOST_TEST((j.gelu == models::Gelu::tanh && t.gelu == models::Gelu::erf && train.gelu == models::Gelu::erf));
  BOOST_TEST((t.qk_norm_eps == 1e-6 && train.qk_norm_eps == 1e-6 && inference.qk_norm_eps == 1e-6));
  BOOST_TEST((t.window_plus_one && !t.decode_window_plus_one));
  BOOST_TEST((train.window_plus_one && !inference.window_plus_one && !inference.decode_window_plus_one));
  BOOST_TEST((t.rope_table == models::RopeTable::f16 && train.rope_table == models::RopeTable::torch_dtype));
  BOOST_TEST((!t.merged_weights && train.merged_weights && !inference.merged_weights));
  BOOST_TEST(models::profile_name(models::configure("dcformer-2.8b", {})) == "T1");
  BOOST_TEST(models::profile_name(models::configure("dcformer-405m", {})) == "J");
  BOOST_TEST(models::profile_name(models::configure("dcformer-8b", {})) == "H-inf");
}

BOOST_AUTO_TEST_CASE(other_keys_beat_the_profile_in_any_order) {
  const models::DcformerConfig c =
      models::configure("dcformer-tiny", {{"profile.gelu", "tanh"}, {"profile.name", "T1"}, {"norm_eps", "1e-4"}});
  BOOST_TEST((c.profile.gelu == models::Gelu::tanh && c.profile.window_plus_one && c.norm_eps == 1e-4));
  BOOST_TEST(models::profile_name(c) == "custom");
  BOOST_TEST(models::get_key(c, "profile.name") == "custom");
  const models::DcformerConfig file = models::read_config(
      R"({"model_type": "dcformer", "vocab_size": 9, "dim": 8, "n_layer": 2, "n_head": 2, "norm_eps": 1e-4,
          "profile": {"window_keys": "W", "name": "J"}})",
      "config.json");
  BOOST_TEST((file.profile.gelu == models::Gelu::tanh && file.norm_eps == 1e-4));
  BRAID_CHECK_FAILS(models::configure("dcformer-tiny", {{"profile.name", "T2"}}), ErrorKind::setting, "profile.name",
                    "one of J, T1, H-train, H-inf, custom", "found 'T2'");
}

BOOST_AUTO_TEST_CASE(folders_are_read_with_the_profile_of_their_code) {
  const auto read = [](const std::string& more) {
    return models::read_config(
        R"({"model_type": "dcformer", "vocab_size": 9, "dim": 8, "n_layer": 2, "n_head": 2)" + more + "}", "c");
  };
  BOOST_TEST(models::profile_name(read("")) == "T1");
  BOOST_TEST(models::profile_name(read(R"(, "prefill_pad": true)")) == "H-inf");
  BOOST_TEST(!read("").profile.merged_weights);
  BOOST_TEST(read(R"(, "mgate": false)").profile.merged_weights);
  BOOST_TEST(read(R"(, "torch_dtype": "bfloat16")").torch_dtype == "bfloat16");
  BOOST_TEST(read(R"(, "dtype": "float16")").torch_dtype == "float16");
}

BOOST_AUTO_TEST_CASE(each_profile_computes_something_else) {
  std::vector<Tensor> full, steps;
  for (const std::string& name : models::profile_names()) {
    const models::Dcformer m = model({{"profile.name", name}});
    full.push_back(logits_of(m));
    steps.push_back(decoded(m));
  }
  for (size_t a = 0; a < full.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      BOOST_TEST(!is_close(full[a], full[b], 1e-6), models::profile_names()[a] + " " + models::profile_names()[b]);
      BOOST_TEST(!is_close(steps[a], steps[b], 1e-6), models::profile_names()[a] + " " + models::profile_names()[b]);
    }
  }
}

BOOST_AUTO_TEST_CASE(everything_a_profile_fixes_matters) {
  // Largest change of the logits, relative; the bounds are orders of magnitude.
  const struct {
    const char *key, *value;
    double at_least, below;
  } table[] = {
      {"profile.gelu", "tanh", 1e-6, 1e-2},        {"profile.qk_norm_eps", "1e-5", 1e-8, 1e-2},
      {"profile.dw_norm_eps", "1e-5", 1e-8, 1e-1}, {"norm_eps", "1e-5", 1e-10, 1e-2},
      {"profile.window_keys", "W", 1e-3, 10},      {"profile.rope_table", "f16", 1e-6, 1e-1},
      {"profile.rope_table", "f32", 1e-10, 1e-4},
  };
  const Keys base = {{"profile.name", "T1"}, {"profile.rope_table", "exact"}, {"norm_eps", "1e-6"}};
  const Tensor want = logits_of(model(base));
  for (const auto& row : table) {
    Keys keys = base;
    keys.emplace_back(row.key, row.value);
    const Tensor got = logits_of(model(keys));
    BOOST_TEST(!is_close(got, want, row.at_least), row.key << "=" << row.value);
    BOOST_TEST(is_close(got, want, row.below), row.key << "=" << row.value);
  }
  // The window of one-token steps shows in these only.
  Keys keys = base;
  keys.emplace_back("profile.decode_window_keys", "W+1");
  BOOST_TEST(is_close(logits_of(model(keys)), want, 0));
  BOOST_TEST(!is_close(decoded(model(keys)), decoded(model(base)), 1e-3));
}

BOOST_AUTO_TEST_CASE(the_rotary_table_follows_torch_dtype) {
  const auto logits = [](const char* type, const char* table) {
    return logits_of(model({{"torch_dtype", type}, {"profile.rope_table", table}}));
  };
  BOOST_TEST(is_close(logits("float16", "torch_dtype"), logits("null", "f16"), 0));
  BOOST_TEST(is_close(logits("float32", "torch_dtype"), logits("null", "f32"), 0));
  BOOST_TEST(is_close(logits("null", "torch_dtype"), logits("null", "f32"), 0));
  BOOST_TEST(!is_close(logits("bfloat16", "torch_dtype"), logits("null", "f16"), 1e-4));
  BOOST_TEST(is_close(logits("bfloat16", "torch_dtype"), logits("null", "exact"), 0.5));
}

BOOST_AUTO_TEST_SUITE_END()
