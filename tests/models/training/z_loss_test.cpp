// The z-loss of a step: in its gradients, not in the losses that are reported.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "braid/models/registry.h"
#include "braid/models/training/trainer.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(z_loss)

namespace {

constexpr double kZ = 0.02;

models::Dcformer model_of(double z) {
  models::Dcformer model(small_config(), {1, 0});
  model.to(DType::f64);
  model.set_z_loss(z);
  return model;
}

struct Step {
  models::StepMetrics metrics;
  std::vector<std::vector<double>> gradients;
  double validation;
};

Step step(double z, bool split = false, int64_t sources = 0) {
  models::Dcformer model = model_of(z);
  models::Trainer trainer(model, {}, 0);
  trainer.separate_sources(sources);
  models::Batch b = small_batch(3);
  if (sources > 0) b.add({models::kSources, from_vector(std::vector<int64_t>{0, 1}, {2})});
  Step made;
  made.metrics = trainer.forward_backward(split ? std::vector{b.slice(0, 1), b.slice(1, 2)} : std::vector{b});
  for (const models::LocalTensor& g : trainer.local_gradients()) made.gradients.push_back(g.values.to_vector<double>());
  made.validation = models::evaluate(model, {small_batch(4)});
  return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_have_it_and_losses_do_not) {
  const Step plain = step(0), with = step(kZ), split = step(kZ, true);
  BOOST_TEST(with.metrics.loss == plain.metrics.loss);
  BOOST_TEST(with.validation == plain.validation);
  BOOST_TEST(std::fabs(with.metrics.grad_norm - plain.metrics.grad_norm) > 1e-3 * plain.metrics.grad_norm);
  BOOST_TEST(is_close({split.metrics.loss}, {plain.metrics.loss}, 1e-12));
  const Step sources = step(kZ, false, 2), plain_sources = step(0, false, 2);
  BOOST_TEST(sources.metrics.source_losses == plain_sources.metrics.source_losses, boost::test_tools::per_element());

  // The mean over the targets, whatever the micro-batches are: of the composed loss.
  models::Dcformer model = model_of(0);
  for (nn::NamedTensor& p : nn::parameters(model)) require_grad(p.value);
  const models::Batch b = small_batch(3);
  const Tensor logits = model.logits(model.hidden(b.at("input_ids")));
  backward(cross_entropy(logits, b.at("targets")) + mean(square(logsumexp(logits, -1))) * kZ);
  size_t i = 0;
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    BOOST_TEST(is_close(with.gradients[i], grad(p.value).to_vector<double>(), 1e-12), p.name);
    BOOST_TEST(is_close(split.gradients[i], grad(p.value).to_vector<double>(), 1e-12), p.name);
    ++i;
  }
}

// What it is for: the logsumexp of a model that trains with it stays nearer to 0.
BOOST_AUTO_TEST_CASE(it_keeps_the_logsumexp_near_zero) {
  const auto after = [](double z) {
    models::Dcformer model = model_of(z);
    models::Trainer trainer(model, {}, 1.0);
    for (int64_t s = 0; s < 30; ++s) trainer.step({small_batch(3)}, 3e-3);
    const NoGrad off;
    return mean(square(logsumexp(model.logits(model.hidden(small_batch(3).at("input_ids"))), -1))).item();
  };
  BOOST_TEST(after(0.3) < 0.7 * after(0));
}

BOOST_AUTO_TEST_CASE(models_without_it_say_so) {
  const auto vit = models::configure_model("vit-28", {})->make({1, 0});
  vit->set_z_loss(0);
  BOOST_TEST(throws_with([&] { vit->set_z_loss(0.25); },
                         "a model of type vit has no z-loss: expected 0 for train.z_loss, found 0.25"));
}

BOOST_AUTO_TEST_SUITE_END()
