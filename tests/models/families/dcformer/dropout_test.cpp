// Dropout of a decoder's training: its derivative, what decides on it, and where there is none.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/training/trainer.h"
#include "tests/models/randomise.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck_model.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dcformer_dropout)

namespace {

constexpr int64_t kSamples = 3, kLength = 6;

models::Dcformer make_model(const std::string& preset, double dropout) {
  models::Dcformer model(models::configure(preset, {{"dim", "8"},
                                                    {"n_head", "2"},
                                                    {"rotary_pct", "0.5"},
                                                    {"n_layer", "2"},
                                                    {"intermediate_size", "6"},
                                                    {"vocab_size", "9"},
                                                    {"window_size", "4"},
                                                    {"block_size", "16"}}),
                         {5, 0});
  model.to(DType::f64);
  randomise(model, {5, 0}, 0.4);
  model.set_dropout(dropout);
  return model;
}

models::Batch batch(const std::vector<int64_t>& keys = {7, 8, 9}) {
  std::vector<int32_t> ids, targets;
  for (int32_t i = 0; i < kSamples * kLength; ++i)
    ids.push_back((i * i + 3 * i) % 9), targets.push_back((5 * i + 2) % 9);
  models::Batch made =
      models::text_batch(from_vector(ids, {kSamples, kLength}), from_vector(targets, {kSamples, kLength}));
  if (!keys.empty()) made.add({models::kSampleKeys, from_vector(keys, {std::ssize(keys)})});
  return made;
}

double loss(const models::Dcformer& model, const models::Batch& b) {
  const NoGrad off;
  return static_cast<const models::Model&>(model).loss_sum(b).item();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_derivative_with_dropout) {
  for (const char* preset : {"dcformer-tiny", "pythia-tiny"}) {
    models::Dcformer model = make_model(preset, 0.3);
    const models::Batch b = batch();
    const GradcheckResult result =
        gradcheck_model(model, [&](const auto&) { return static_cast<models::Model&>(model).loss_sum(b); });
    BOOST_TEST(result.error < 1e-7, preset << ": " << result.where);
  }
}

BOOST_AUTO_TEST_CASE(recomputed_blocks_drop_the_same) {
  const auto gradients = [&](bool recompute) {
    models::Dcformer model = make_model("dcformer-tiny", 0.3);
    model.set_recompute(recompute);
    backward(static_cast<models::Model&>(model).loss_sum(batch()));
    std::vector<std::vector<double>> all;
    for (const nn::NamedTensor& p : nn::parameters(model)) all.push_back(grad(p.value).to_vector<double>());
    return all;
  };
  BOOST_TEST((gradients(false) == gradients(true)));
}

// Samples do not know of each other; their keys decide alone.
BOOST_AUTO_TEST_CASE(the_keys_of_the_samples_decide) {
  const models::Dcformer model = make_model("dcformer-tiny", 0.3), plain = make_model("dcformer-tiny", 0);
  double sum = 0;
  for (int64_t i = 0; i < kSamples; ++i) sum += loss(model, batch().slice(i, i + 1));
  BOOST_TEST(std::fabs(loss(model, batch()) - sum) < 1e-12 * std::fabs(sum));
  BOOST_TEST(loss(model, batch()) != loss(model, batch({7, 8, 10})));
  BOOST_TEST(std::fabs(loss(model, batch()) - loss(plain, batch())) > 1e-3);
  BOOST_TEST(loss(plain, batch()) == loss(plain, batch({})));
  BOOST_TEST(loss(model, batch({})) == loss(plain, batch({})));  // evaluation, which has no keys
  const NoGrad off;
  const Tensor ids = batch().at("input_ids");
  BOOST_TEST(is_close(model.logits(model.hidden(ids)), plain.logits(plain.hidden(ids)), 0));
}

// With p near 1 nothing is left of what is dropped: logits of zeros, a loss of log V per target.
BOOST_AUTO_TEST_CASE(the_embedding_and_every_branch_lose_elements) {
  constexpr double kAlmostAll = 1 - 1e-9;
  for (const char* preset : {"transformer-tiny", "pythia-tiny"}) {
    models::Dcformer model = make_model(preset, kAlmostAll);
    for (const nn::NamedTensor& p : nn::parameters(model))
      if (p.name.ends_with(".bias")) p.value.detach().fill(0);
    BOOST_TEST(std::fabs(loss(model, batch()) - kSamples * kLength * std::log(9.0)) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(bad_keys_are_errors) {
  const models::Dcformer model = make_model("dcformer-tiny", 0.3);
  BOOST_TEST(throws_with([&] { model.check_batch(batch({1, 2})); }, "sample_keys must be i64 (3), found i64 (2)"));
}

BOOST_AUTO_TEST_SUITE_END()
