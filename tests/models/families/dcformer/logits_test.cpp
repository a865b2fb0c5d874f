// Logits that are capped: c tanh(x / c), everywhere, and in the files of the model.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck_model.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dcformer_logits)

namespace {

constexpr double kCap = 1.5;

Keys capped(Keys keys = {}) {
  keys.emplace_back("logit_softcap", "1.5");
  return keys;
}

models::Batch batch() {
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < 22; ++i) ids.push_back((i * i + 3 * i) % 40), targets.push_back(i % 5 == 1 ? -1 : i % 40);
  return models::text_batch(from_vector(ids, {2, 11}), from_vector(targets, {2, 11}));
}

}  // namespace

// By the definition, from the logits of the same model without a cap; the loss in chunks is that of these logits.
BOOST_AUTO_TEST_CASE(logits_and_loss_by_the_definition) {
  const NoGrad off;
  for (const char* tied : {"false", "true"}) {
    const models::Dcformer model = mixing_model("dcformer-tiny", capped({{"tie_word_embeddings", tied}})),
                           plain = mixing_model("dcformer-tiny", {{"tie_word_embeddings", tied}});
    const models::Batch b = batch();
    const Tensor x = plain.logits(plain.hidden(b.at("input_ids")));
    const Tensor want = kCap * tanh(x / kCap);
    BOOST_TEST(!is_close(want, x, 0.1));
    BOOST_TEST(is_close(model.logits(model.hidden(b.at("input_ids"))), want, 1e-14));
    const double loss = sum(cross_entropy_per_token(want, b.at("targets"))).item();
    BOOST_TEST(is_close({model.loss_sum(b).item()}, {loss}, 1e-13));
  }
}

BOOST_AUTO_TEST_CASE(the_derivative_of_the_loss_with_both) {
  models::Dcformer model = mixing_model("dcformer-tiny", capped({{"dim", "8"},
                                                                 {"n_head", "2"},
                                                                 {"n_layer", "1"},
                                                                 {"intermediate_size", "6"},
                                                                 {"vocab_size", "40"},
                                                                 {"tie_word_embeddings", "true"}}));
  model.set_z_loss(0.1);
  const models::Batch b = batch();
  const GradcheckResult result = gradcheck_model(model, [&](const auto&) { return model.loss_sum(b); });
  BOOST_TEST(result.error < 1e-7, result.where);
}

BOOST_AUTO_TEST_CASE(eight_bit_heads_are_capped) {
  const NoGrad off;
  models::Dcformer model = mixing_model("dcformer-tiny", capped(), DType::f32);
  model.quantize_weights();
  const models::Batch b = batch();
  const Tensor logits = model.logits(model.hidden(b.at("input_ids")));
  for (const double x : logits.to_vector<double>()) BOOST_REQUIRE(std::fabs(x) <= kCap);
  BOOST_TEST(
      is_close({model.loss_sum(b).item()}, {sum(cross_entropy_per_token(logits, b.at("targets"))).item()}, 1e-6));
}

BOOST_AUTO_TEST_CASE(folders_hold_it) {
  for (const char* preset : {"dcformer-tiny", "llama-tiny"}) {
    const models::DcformerConfig with = models::configure(preset, capped()), without = models::configure(preset, {});
    const std::string text = models::write_config(with);
    BOOST_TEST(text.find("\"logit_softcap\": 1.5") != std::string::npos, text);
    BOOST_TEST((models::read_config(text, "config.json") == with));
    BOOST_TEST(models::write_config(without).find("softcap") == std::string::npos);
  }
  BOOST_TEST(throws_with(
      [] {
        models::configure("dcformer-tiny", {{"logit_softcap", "-1"}});
      },
      "bad value for model key logit_softcap: expected a number from 0 to 1048576, found '-1'"));
}

BOOST_AUTO_TEST_SUITE_END()
