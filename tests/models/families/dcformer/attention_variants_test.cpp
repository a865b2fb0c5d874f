// The settings attention, attention_layers and compose_layers of a model: parameters, config.json, folders, errors.
#include <boost/test/unit_test.hpp>

#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/inference/generate.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/nn/attention/variant.h"
#include "tests/models/folders/support.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using models::configure;
using models::DcformerConfig;

BOOST_AUTO_TEST_SUITE(attention_settings)

namespace {

// The layers that have parameters whose names contain `part`.
std::string layers_with(const DcformerConfig& config, const std::string& part) {
  std::string found(static_cast<size_t>(config.n_layer), '.');
  for (const nn::NamedTensor& p : models::shape_only_parameters(config))
    for (int64_t i = 0; i < config.n_layer; ++i)
      if (p.name.starts_with(str("layers.", i, ".")) && p.name.find(part) != std::string::npos)
        found[static_cast<size_t>(i)] = 'x';
  return found;
}

models::Batch token_batch(int64_t step) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 26; ++i) ids.push_back((i * 7 + i * i + 5 * step) % 40);
  const Tensor text = from_vector(ids, {2, 13});
  return models::text_batch(text.sliced(1, 0, 12).clone(), text.sliced(1, 1, 13).clone());
}

}  // namespace

BOOST_AUTO_TEST_CASE(layers_have_what_their_patterns_say) {
  const Keys four = {{"n_layer", "4"}, {"window_type", "LG"}};
  const auto made = [&](Keys keys) {
    keys.insert(keys.begin(), four.begin(), four.end());
    return configure("dcformer-tiny", keys);
  };
  BOOST_TEST(layers_with(made({}), "dyn_w_proj") == "xxxx");
  BOOST_TEST(layers_with(made({}), "gated") == "....");
  const DcformerConfig some =
      made({{"compose_layers", "local"}, {"attention", "gated,xsa"}, {"attention_layers", "last:1"}});
  BOOST_TEST(layers_with(some, "dyn_w_proj") == "x.x.");
  BOOST_TEST(layers_with(some, "attention.gated.gate.weight") == "...x");
  BOOST_TEST(layers_with(made({{"use_dcmha", "false"}}), "dyn_w_proj") == "....");
}

BOOST_AUTO_TEST_CASE(a_config_names_them_only_where_they_are) {
  const DcformerConfig usual = configure("dcformer-tiny", {});
  const std::string text = models::write_config(usual);
  for (const char* key : {"attention\"", "attention_layers", "compose_layers"})
    BOOST_TEST(text.find(key) == std::string::npos, key);
  BOOST_TEST((models::read_config(text, "config.json") == usual));
  for (const char* preset : {"dcformer-tiny", "llama-tiny"}) {
    const DcformerConfig varied = configure(preset, {{"attention", "diff-v2,gated-head"}, {"compose_layers", "0"}});
    BOOST_TEST(models::get_key(varied, "attention") == "diff-v2,gated-head");
    BOOST_TEST((models::read_config(models::write_config(varied), "config.json") == varied));
  }
  BOOST_TEST(models::get_key(usual, "attention") == "plain");
  BOOST_TEST((configure("dcformer-tiny", {{"attention", "plain"}}) == usual));
}

BOOST_AUTO_TEST_CASE(every_variant_is_saved_and_loaded_in_each_form_of_folder) {
  std::vector<Keys> lists = {{{"attention", "diff-v2,gated,xsa"}, {"compose_layers", "last:2"}}};
  for (const nn::AttentionVariantRule& rule : nn::attention_variants())
    lists.push_back({{"attention", rule.name}, {"use_dcmha", "false"}});
  for (const char* preset : {"dcformer-tiny", "transformer-tiny", "llama-tiny"}) {
    for (const Keys& keys : lists) {
      BOOST_TEST_CONTEXT(preset << " " << keys[0].second) {
        TempFolder scratch;
        const models::Dcformer model = mixing_model(preset, keys, DType::f32);
        models::save_model(model, nullptr, scratch.path);
        const auto loaded = models::load_model(scratch.path, {});
        BOOST_TEST(loaded.notes.empty());
        const std::vector<nn::NamedTensor> want = nn::parameters(model), got = nn::parameters(*loaded.model);
        BOOST_REQUIRE(want.size() == got.size());
        for (size_t i = 0; i < want.size(); ++i) {
          BOOST_TEST(want[i].name == got[i].name);
          BOOST_TEST(is_close(got[i].value.detach(), want[i].value.detach(), 0), want[i].name);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_variant_trains_resumes_and_generates) {
  for (const Keys& keys : variant_keys()) {
    BOOST_TEST_CONTEXT(keys[0].second) {
      const TempFolder run;
      models::Dcformer model = mixing_model("dcformer-tiny", keys, DType::f32);
      std::map<std::string, Tensor> before;
      for (const auto& [name, value] : nn::parameters(model)) before[name] = value.detach().clone();
      models::Trainer trainer(model, {}, 1.0);
      for (int64_t step : {0, 1}) BOOST_TEST(std::isfinite(trainer.step({token_batch(step)}, 1e-2).loss));
      for (const auto& [name, value] : nn::parameters(model))
        BOOST_TEST(!is_close(value.detach(), before.at(name), 0), name);
      models::CheckpointWriter(run.path, 2).save(trainer, nullptr, {2, 0, 0, 1, 12, "data"}, "");

      models::Dcformer resumed(model.config(), {99, 0});
      models::Trainer continued(resumed, {}, 1.0);
      models::load_checkpoint(run.path / models::step_name(2), continued);
      const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2};
      const auto text = [&](const models::LanguageModel& m) {
        return models::generate(m, prompt, 8, {.temperature = 0}).tokens;
      };
      BOOST_TEST(text(resumed) == text(model), boost::test_tools::per_element());
      BOOST_TEST(continued.step({token_batch(2)}, 1e-2).loss == trainer.step({token_batch(2)}, 1e-2).loss);
      const std::vector<nn::NamedTensor> want = nn::parameters(model), got = nn::parameters(resumed);
      for (size_t i = 0; i < want.size(); ++i)
        BOOST_TEST(is_close(got[i].value.detach(), want[i].value.detach(), 0), want[i].name);
    }
  }
}

BOOST_AUTO_TEST_CASE(recomputed_layers_have_the_same_gradients) {
  for (const Keys& keys : variant_keys()) {
    BOOST_TEST_CONTEXT(keys[0].second) {
      const models::Batch batch = token_batch(0);
      std::map<std::string, Tensor> want;
      for (const bool again : {false, true}) {
        models::Dcformer model = mixing_model("dcformer-tiny", keys);
        model.set_recompute(again);
        backward(model.loss_sum(batch));
        for (const auto& [name, value] : nn::parameters(model)) {
          if (again) BOOST_TEST(is_close(grad(value), want.at(name), 1e-11), name);
          want[name] = grad(value);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(products_of_a_variant_are_counted) {
  const auto flops = [](const char* attention) {
    return models::flops_per_token(configure("transformer-tiny", {{"attention", attention}}), 64);
  };
  const DcformerConfig c = configure("transformer-tiny", {});
  const auto L = static_cast<double>(c.n_layer), N = static_cast<double>(c.n_head), d = static_cast<double>(c.head_dim),
             D = static_cast<double>(c.dim);
  const models::Flops plain = flops("plain");
  BOOST_TEST(flops("gated").projections - plain.projections == L * 2 * D * N * d);
  BOOST_TEST(flops("gated-head").projections - plain.projections == L * 2 * D * N);
  BOOST_TEST(flops("knocking").projections - plain.projections == L * 3 * N * 2 * d * d);  // each head by the matrix
  BOOST_TEST(flops("diff-v2").projections - plain.projections == L * (2 * D * N * d + 2 * D * N));
  BOOST_TEST(flops("diff-v2").attention == 2 * plain.attention);
  const double P = 2;  // pseudo tokens: sums of N heads for each, and attention among P times as many
  BOOST_TEST(flops("iha").projections - plain.projections == L * 3 * N * P * 2 * N * d);
  BOOST_TEST(flops("iha").attention > 3.5 * plain.attention);
  BOOST_TEST(flops("iha").attention <= 4 * plain.attention);
  for (const char* of_ops : {"sink", "off-by-one"}) {
    BOOST_TEST(flops(of_ops).projections == plain.projections, of_ops);
    BOOST_TEST(flops(of_ops).attention == plain.attention, of_ops);
    BOOST_TEST(flops(of_ops).forward() == plain.forward(), of_ops);
  }
  // Sums of 6 x 11 neighbours and of 2 heads, for each score of an unmasked key; a gate of each head.
  BOOST_TEST(flops("mta").attention - plain.attention == L * 2 * (6 * 11 + 2) * N * (64 + 1) / 2);
  BOOST_TEST(flops("mta").projections - plain.projections == L * 2 * N * d);
  BOOST_TEST(flops("value-residual").projections == plain.projections);
  BOOST_TEST(flops("xsa").logits == plain.logits);
  BOOST_TEST(flops("knocking").logits == plain.logits);
}

BOOST_AUTO_TEST_CASE(a_composed_variant_says_that_it_is_slower) {
  const auto warning = [](const char* attention) {
    return models::configure_model("transformer-tiny", {{"attention", attention}})->training_warning();
  };
  BOOST_TEST(warning("gated,xsa") == "");
  BOOST_TEST(warning("iha,value-residual") == "");
  BOOST_TEST(warning("sink").starts_with("attention=sink is computed as ops on blocks of scores"));
}

BOOST_AUTO_TEST_CASE(a_cache_is_that_of_the_layers) {
  const auto bytes = [](const Keys& keys) {
    Keys all = {{"window_type", "G"}, {"n_layer", "4"}};
    all.insert(all.end(), keys.begin(), keys.end());
    return models::cache_bytes(configure("dcformer-tiny", all), 1, 64).per_token;
  };
  const double with = bytes({}), without = bytes({{"use_dcmha", "false"}});
  BOOST_TEST(bytes({{"compose_layers", "last:1"}}) == without + (with - without) / 4);
  BOOST_TEST(bytes({{"use_dcmha", "false"}, {"attention", "diff-v2"}}) == without);  // its keys and values are as many
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    const Keys keys = {{"attention", rule.name}, {"use_dcmha", "false"}, {"n_kv_head", "2"}, {"window_type", "G"}};
    const models::Dcformer model = mixing_model("dcformer-tiny", keys, DType::f32);
    models::KvCache cache = model.make_cache(96);
    const NoGrad off;
    model.hidden(zeros({2, 96}, DType::i64), &cache);
    BOOST_TEST(static_cast<double>(cache.bytes()) == models::cache_bytes(model.config(), 2, 96).full, rule.name);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_one_sentence) {
  const auto rejected = [](const char* preset, const Keys& keys, const std::string& message) {
    BOOST_TEST(throws_with([&] { configure(preset, keys); }, message));
  };
  rejected("dcformer-tiny", {{"attention", "gatet"}},
           "bad value for model key attention: expected a list of different names out of diff-v2, gated, ");
  rejected("dcformer-tiny", {{"attention", "gated,diff-v2"}},
           "bad attention: expected diff-v2 first, which makes heads of several query heads, found gated,diff-v2");
  rejected("dcformer-tiny", {{"attention", "diff-v2"}, {"attention_layers", "even"}},
           "bad attention_layers: expected all with attention diff-v2, found even");
  rejected("transformer-tiny", {{"attention", "sink,off-by-one"}},
           "bad attention: expected one variant in the place of the softmax, found sink and off-by-one");
  rejected("transformer-tiny", {{"attention", "mta,iha"}},
           "bad attention: expected one variant whose scores are those of several tokens, found mta and iha");
  rejected("dcformer-tiny", {{"attention", "iha"}},
           "bad attention: expected iha in layers without DCMHA, as with compose=none, found both in layer 0");
  rejected("dcformer-tiny", {{"attention", "sink"}, {"compose_layers", "1"}},
           "bad attention: expected sink in layers without DCMHA, as with compose=none, found both in layer 1");
  rejected("dcformer-tiny", {{"compose_layers", "last:99"}}, "bad compose_layers: expected layers of the model's ");
  rejected("dcformer-tiny", {{"attention_layers", "some"}},
           "bad value for model key attention_layers: expected all, even, odd, local, global, first:N, last:N, or ");
  BOOST_TEST(throws_with(
      [] {
        models::configure_model("gpt-neox-tiny", {{"attention", "diff-v2"}});
      },
      "bad attention: expected one query head for each head in a model of type gpt_neox"));
  BOOST_TEST(throws_with(
      [] {
        models::configure_model("dcformer-tiny", {{"attention", "xsa"}})->python_code();
      },
      "the Python code of a folder knows no other attention than plain, found xsa"));
  BOOST_TEST(throws_with(
      [] {
        models::configure_model("dcformer-tiny", {{"compose_layers", "0"}})->python_code();
      },
      "the Python code of a folder knows no other compose_layers than all, found 0"));
}

BOOST_AUTO_TEST_SUITE_END()
