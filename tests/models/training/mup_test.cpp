// First weights and learning rates by width.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/seq2seq/family.h"
#include "braid/models/families/vit/family.h"
#include "braid/models/training/trainer.h"
#include "tests/models/families/seq2seq/support.h"
#include "tests/models/families/vit/support.h"
#include "tests/models/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mup)

namespace {

constexpr double kGrowth = 4;  // of a model of width 128 over its base

models::DcformerConfig config_of(const models::SettingTexts& settings) {
  models::SettingTexts all = {{"dim", "128"},        {"n_head", "8"},         {"n_layer", "2"},
                              {"vocab_size", "258"}, {"block_size", "32"},    {"intermediate_size", "256"},
                              {"compose", "full"},   {"mup_base_width", "32"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return models::configure(models::DcformerConfig(), all);
}

models::VitConfig vit_of(const models::SettingTexts& settings) {
  models::SettingTexts all = {{"hidden_size", "128"},       {"num_attention_heads", "8"}, {"num_hidden_layers", "2"},
                              {"intermediate_size", "256"}, {"image_size", "8"},          {"patch_size", "4"},
                              {"num_channels", "1"},        {"num_labels", "3"},          {"pool_type", "tok"},
                              {"posemb", "learn"},          {"rep_size", "true"},         {"use_dcmha", "true"},
                              {"mup_base_width", "32"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return models::configure(models::VitConfig(), all);
}

models::Seq2SeqConfig pairs_of(int64_t width, int64_t base) {
  models::Seq2SeqConfig c = small_seq2seq();
  c.hidden_size = width;
  c.num_attention_heads = width / 16;
  c.intermediate_size = 2 * width;
  c.mup_base_width = base;
  c.rank = 8;
  return c;
}

// The factor of the learning rate of each parameter.
std::map<std::string, double> rates(const models::ModelSpec& spec, const nn::OptimizerOptions& options = {}) {
  const std::unique_ptr<models::Model> model = spec.make_shape_only();
  const nn::OptimizerOptions all = models::options_for(*model, options);
  std::map<std::string, double> factors;
  for (const nn::NamedTensor& p : nn::parameters(*model)) factors[p.name] = nn::rule_of(all.groups, p.name).lr;
  return factors;
}
std::map<std::string, double> rates(const models::SettingTexts& settings, const nn::OptimizerOptions& options = {}) {
  return rates(models::DcformerSpec(config_of(settings)), options);
}

double deviation(const models::Model& model, const std::string& name) {
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    if (p.name != name) continue;
    double squares = 0;
    for (const double v : p.value.to_vector<double>()) squares += v * v;
    return std::sqrt(squares / static_cast<double>(p.value.numel()));
  }
  throw std::runtime_error("no parameter " + name);
}

std::vector<double> trained(
    const models::ModelSpec& spec, const std::string& rule,
    const std::function<models::Batch(int64_t i)>& batch = [](int64_t i) { return small_batch(i); }) {
  const std::unique_ptr<models::Model> model = spec.make({3, 0});
  models::Trainer trainer(*model, {.name = rule}, 1.0);
  for (int64_t i = 0; i < 3; ++i) trainer.step({batch(i)}, 1e-2);
  std::vector<double> all;
  for (const nn::NamedTensor& p : nn::parameters(*model))
    for (const double v : p.value.to_vector<double>()) all.push_back(v);
  return all;
}

// Ratios of deviations to those of the base.
void check_deviations(const models::ModelSpec& spec, const std::map<std::string, double>& expected,
                      const std::string& what) {
  const std::unique_ptr<models::Model> wide = spec.make({5, 0}), base = spec.mup_base()->make({5, 0});
  for (const auto& [name, factor] : expected) {
    const double ratio = deviation(*wide, name) / deviation(*base, name);
    BOOST_TEST(std::fabs(ratio / factor - 1) < 0.1, what << " " << name << ": " << ratio << " not " << factor);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_the_base_width_no_bit_changes) {
  for (const char* rule : {"adamw", "muon"})
    for (const char* init : {"jax", "pytorch"})
      BOOST_TEST((trained(models::DcformerSpec(config_of({{"mup_base_width", "128"}, {"init", init}})), rule) ==
                  trained(models::DcformerSpec(config_of({{"mup_base_width", "null"}, {"init", init}})), rule)),
                 rule << " " << init);
  for (const char* rule : {"adamw", "muon"}) {
    const auto images = [](int64_t i) { return vit_batch(vit_of({}), 4, static_cast<uint64_t>(i)); };
    BOOST_TEST((trained(models::VitSpec(vit_of({{"mup_base_width", "128"}})), rule, images) ==
                trained(models::VitSpec(vit_of({{"mup_base_width", "null"}})), rule, images)),
               rule);
    const auto pairs = [](int64_t i) { return seq2seq_batch(pairs_of(64, 0), 2 + i); };
    BOOST_TEST((trained(models::Seq2SeqSpec(pairs_of(64, 64)), rule, pairs) ==
                trained(models::Seq2SeqSpec(pairs_of(64, 0)), rule, pairs)),
               rule);
  }
}

BOOST_AUTO_TEST_CASE(rates_of_image_models_follow_the_fan_in) {
  for (const char* positions : {"learn", "sincos2d"}) {
    const bool learned = std::string_view(positions) == "learn";
    const models::VitSpec spec(
        vit_of({{"posemb", positions}, {"pool_type", learned ? "tok" : "gap"}, {"stem_channels", learned ? "" : "6"}}));
    std::map<std::string, double> expected;
    for (const nn::NamedTensor& p : spec.parameters()) expected[p.name] = p.value.rank() < 2 ? 1 : 1 / kGrowth;
    for (const char* input : {"patches.weight", "class_token", "positions", "stem.0.convolution.weight"})
      if (expected.contains(input)) expected[input] = 1;
    for (auto& [name, factor] : expected)
      if (name.ends_with(".qkw")) factor /= kGrowth;
    BOOST_TEST(expected.contains("class_token") == learned);
    BOOST_TEST(expected.contains("stem.0.convolution.weight") == !learned);
    BOOST_TEST(expected.at("classifier.weight") == 1 / kGrowth);
    BOOST_TEST(expected.at("layers.1.attention.dyn_w_proj.qkw") == 1 / (kGrowth * kGrowth));
    for (const auto& [name, factor] : rates(spec)) BOOST_TEST(factor == expected.at(name), name << ": " << factor);
  }
  const auto muon = rates(models::VitSpec(vit_of({})), {.name = "muon"});
  BOOST_TEST(muon.at("layers.0.mlp.w1.weight") == 1 / std::sqrt(kGrowth));
  BOOST_TEST(muon.at("classifier.weight") == 1 / kGrowth);  // by AdamW
  BOOST_TEST(muon.at("patches.weight") == 1);
}

BOOST_AUTO_TEST_CASE(rates_of_encoder_decoders_follow_the_fan_in) {
  const models::Seq2SeqSpec spec(pairs_of(128, 32));
  std::map<std::string, double> expected;
  for (const nn::NamedTensor& p : spec.parameters()) expected[p.name] = p.value.rank() < 2 ? 1 : 1 / kGrowth;
  for (const char* input : {"embeddings.weight", "source_positions", "target_positions"}) expected.at(input) = 1;
  int mixing = 0;
  for (auto& [name, factor] : expected)
    if (name.ends_with(".qkw")) factor /= kGrowth, ++mixing;
  BOOST_TEST(mixing > 3);  // of the encoder, the decoder and both sides of cross-attention
  for (const char* hidden :
       {"decoder.layers.0.cross_attention.wq.weight", "decoder.layers.0.cross_attention.wkv.weight",
        "encoder.layers.0.attention.wo.weight", "output.weight"})
    BOOST_TEST(expected.at(hidden) == 1 / kGrowth);
  for (const auto& [name, factor] : rates(spec)) BOOST_TEST(factor == expected.at(name), name << ": " << factor);
  const auto muon = rates(spec, {.name = "muon"});
  BOOST_TEST(muon.at("decoder.layers.0.cross_attention.wkv.weight") == 1 / std::sqrt(kGrowth));
  BOOST_TEST(muon.at("source_positions") == 1);
  BOOST_TEST(muon.at("output.weight") == 1 / kGrowth);
}

BOOST_AUTO_TEST_CASE(rates_of_adamw_follow_the_fan_in) {
  const auto factors = rates({});
  const std::string layer = "layers.1.";
  for (const char* name : {"tok_embeddings.weight", "norm.weight", "layers.1.attention_norm.weight"})
    BOOST_TEST(factors.at(name) == 1, name);
  for (const char* name : {"attention.wqkv.weight", "attention.wo.weight", "attention.dyn_w_proj.dw1",
                           "attention.dyn_w_proj.dd", "attention.dyn_w_proj.pre_proj.w", "feed_forward.w1.weight",
                           "feed_forward.w2.weight", "feed_forward.w3.weight"})
    BOOST_TEST(factors.at(layer + name) == 1 / kGrowth, name);
  BOOST_TEST(factors.at("output.weight") == 1 / kGrowth);
  BOOST_TEST(factors.at("layers.1.attention.dyn_w_proj.qkw") == 1 / (kGrowth * kGrowth));

  // The second matrix of MUDD's generators reads hidden units whose number is that of layers.
  const auto mudd = rates({{"residual", "mudd"}});
  BOOST_TEST(mudd.at("dynamic_dense.0.w1.weight") == 1 / kGrowth);
  BOOST_TEST(mudd.at("dynamic_dense.0.w2.weight") == 1);
  BOOST_TEST(mudd.at("dense_bs.0") == 1);
  BOOST_TEST(rates({{"residual", "attnres"}}).at("depth.queries") == 1 / kGrowth);
  BOOST_TEST(rates({{"attention", "value-embedding"}}).at("layers.0.attention.value-embedding.table") == 1);
}

BOOST_AUTO_TEST_CASE(groups_multiply_the_rates_of_muon_too) {
  const auto rms = rates({}, {.name = "muon", .groups = {nn::parse_group("*.wo.* lr=3")}});
  BOOST_TEST(rms.at("layers.0.attention.wqkv.weight") == 1 / std::sqrt(kGrowth));
  BOOST_TEST(rms.at("layers.0.attention.wo.weight") == 3 / std::sqrt(kGrowth));
  BOOST_TEST(rms.at("output.weight") == 1 / kGrowth);  // by AdamW
  const auto spectral =
      rates({{"residual", "mudd"}}, {.name = "muon", .muon = {.scale = nn::MuonOptions::Scale::spectral}});
  BOOST_TEST(spectral.at("layers.0.attention.wqkv.weight") == 1);
  BOOST_TEST(spectral.at("dynamic_dense.0.w1.weight") == 1 / std::sqrt(kGrowth));
}

BOOST_AUTO_TEST_CASE(first_deviations_follow_the_fan_in) {
  const double root = 1 / std::sqrt(kGrowth);
  for (const char* init : {"jax", "pytorch"})
    check_deviations(models::DcformerSpec(config_of({{"init", init}})),
                     {{"tok_embeddings.weight", 1},
                      {"layers.0.attention.wqkv.weight", root},
                      {"layers.0.feed_forward.w2.weight", root},
                      {"layers.0.attention.dyn_w_proj.dd", root},
                      {"output.weight", 1 / kGrowth}},
                     init);
  const std::string compose = "attention.dyn_w_proj.";
  check_deviations(models::VitSpec(vit_of({})),
                   {{"patches.weight", 1},
                    {"positions", 1},
                    {"pre_logits.weight", root},
                    {"layers.0.attention.wqkv.weight", root},
                    {"layers.0.mlp.w2.weight", root},
                    {"layers.0." + compose + "dw1", root},
                    {"layers.0." + compose + "dd", root},
                    {"layers.0." + compose + "qkw", root / kGrowth}},
                   "vit");
  const std::string cross = "decoder.layers.0.cross_attention.";
  check_deviations(models::Seq2SeqSpec(pairs_of(128, 32)),
                   {{"embeddings.weight", 1},
                    {"source_positions", 1},
                    {"target_positions", 1},
                    {cross + "wq.weight", root},
                    {cross + "wkv.weight", root},
                    {cross + "dyn_query.qkw", root / kGrowth},
                    {cross + "dyn_key.dw1", root},
                    {"output.weight", 1 / kGrowth}},
                   "seq2seq");
}

BOOST_AUTO_TEST_CASE(what_has_no_base_is_rejected) {
  BRAID_CHECK_FAILS(config_of({{"mup_base_width", "40"}}), ErrorKind::setting, "mup_base_width",
                    "a multiple of 16, since the heads of both widths are equally wide");
  BRAID_CHECK_FAILS(config_of({{"tie_word_embeddings", "true"}}), ErrorKind::setting, "tie_word_embeddings",
                    "false with mup_base_width");
  BRAID_CHECK_FAILS(config_of({{"scale_embeddings", "true"}}), ErrorKind::setting,
                    "bad scale_embeddings: expected false with mup_base_width");
  for (const auto& make : std::vector<std::function<void()>>{[] {
                                                               vit_of({{"mup_base_width", "40"}});
                                                             },
                                                             [] { models::Seq2SeqSpec(pairs_of(64, 24)); }})
    BRAID_CHECK_FAILS(make(), ErrorKind::setting, "bad mup_base_width: expected a multiple of 16");
}

BOOST_AUTO_TEST_CASE(folders_name_the_base_where_there_is_one) {
  const models::VitSpec vit(vit_of({})), plain(vit_of({{"mup_base_width", "null"}}));
  BOOST_TEST((models::read_vit_config(vit.config_json(), "config.json") == vit.config()));
  BOOST_TEST(plain.config_json().find("mup") == std::string::npos);
  const models::Seq2SeqSpec pairs(pairs_of(64, 32)), without(pairs_of(64, 0));
  BOOST_TEST((models::read_seq2seq_config(pairs.config_json(), "config.json") == pairs.config()));
  BOOST_TEST(without.config_json().find("mup") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
