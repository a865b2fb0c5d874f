// First weights and learning rates by width.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/models/families/dcformer/family.h"
#include "braid/models/training/trainer.h"
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

// The factor of the learning rate of each parameter.
std::map<std::string, double> rates(const models::SettingTexts& settings, const nn::OptimizerOptions& options = {}) {
  const models::DcformerSpec spec(config_of(settings));
  const std::unique_ptr<models::Model> model = spec.make_shape_only();
  const nn::OptimizerOptions all = models::options_for(*model, options);
  std::map<std::string, double> factors;
  for (const nn::NamedTensor& p : nn::parameters(*model)) factors[p.name] = nn::rule_of(all.groups, p.name).lr;
  return factors;
}

double deviation(const models::Dcformer& model, const std::string& name) {
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    if (p.name != name) continue;
    double squares = 0;
    for (const double v : p.value.to_vector<double>()) squares += v * v;
    return std::sqrt(squares / static_cast<double>(p.value.numel()));
  }
  throw std::runtime_error("no parameter " + name);
}

std::vector<double> trained(const models::DcformerConfig& config, const std::string& rule) {
  models::Dcformer model(config, {3, 0});
  models::Trainer trainer(model, {.name = rule}, 1.0);
  for (int64_t i = 0; i < 3; ++i) trainer.step({small_batch(i)}, 1e-2);
  std::vector<double> all;
  for (const nn::NamedTensor& p : nn::parameters(model))
    for (const double v : p.value.to_vector<double>()) all.push_back(v);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_the_base_width_no_bit_changes) {
  for (const char* rule : {"adamw", "muon"})
    for (const char* init : {"jax", "pytorch"})
      BOOST_TEST((trained(config_of({{"mup_base_width", "128"}, {"init", init}}), rule) ==
                  trained(config_of({{"mup_base_width", "null"}, {"init", init}}), rule)),
                 rule << " " << init);
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
  for (const char* init : {"jax", "pytorch"}) {
    const models::DcformerConfig config = config_of({{"init", init}});
    const models::Dcformer wide(config, {5, 0}), base(config.mup_base(), {5, 0});
    for (const auto& [name, factor] : {std::pair<const char*, double>{"tok_embeddings.weight", 1},
                                       {"layers.0.attention.wqkv.weight", 1 / std::sqrt(kGrowth)},
                                       {"layers.0.feed_forward.w2.weight", 1 / std::sqrt(kGrowth)},
                                       {"layers.0.attention.dyn_w_proj.dd", 1 / std::sqrt(kGrowth)},
                                       {"output.weight", 1 / kGrowth}}) {
      const double ratio = deviation(wide, name) / deviation(base, name);
      BOOST_TEST(std::fabs(ratio / factor - 1) < 0.1, init << " " << name << ": " << ratio << " not " << factor);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_has_no_base_is_rejected) {
  BRAID_CHECK_FAILS(config_of({{"mup_base_width", "40"}}), ErrorKind::setting, "mup_base_width",
                    "a multiple of 16, since the heads of both widths are equally wide");
  BRAID_CHECK_FAILS(config_of({{"tie_word_embeddings", "true"}}), ErrorKind::setting, "tie_word_embeddings",
                    "false with mup_base_width");
  BRAID_CHECK_FAILS(config_of({{"scale_embeddings", "true"}}), ErrorKind::setting,
                    "bad scale_embeddings: expected false with mup_base_width");
}

BOOST_AUTO_TEST_SUITE_END()
