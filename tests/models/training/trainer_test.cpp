#include "braid/models/training/trainer.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd/ops.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(trainer)

namespace {
models::Batch shard_sequence(const models::Batch& b, int64_t begin, int64_t end) { return b.slice(begin, end); }
}  // namespace

BOOST_AUTO_TEST_CASE(a_tiny_model_learns_one_batch) {
  models::Dcformer model(small_config(), {1, 0});
  models::Trainer trainer(model, {.weight_decay = 0}, 1.0);
  models::Batch b = small_batch(3);
  double loss = 0;
  for (int step = 0; step < 200; ++step) loss = trainer.step({b}, 5e-3).loss;
  BOOST_TEST(loss < 0.01);
}

BOOST_AUTO_TEST_CASE(loss_is_the_mean_over_valid_tokens_of_all_micro_batches) {
  // The second row counts three tokens only; split over two micro-batches the step must be the same.
  models::Batch b = small_batch(5);
  b.at("targets").sliced(0, 1, 2).sliced(1, 3, 16).fill(-100);
  auto run = [&](const std::vector<models::Batch>& parts) {
    models::Dcformer model(small_config(), {1, 0});
    model.to(DType::f64);
    models::Trainer trainer(model, {}, 0);
    models::StepMetrics r = trainer.step(parts, 1e-2);
    BOOST_TEST(r.tokens == 19);
    std::vector<double> all{r.loss, r.grad_norm};
    for (const nn::NamedTensor& p : nn::parameters(model)) {
      for (double v : p.value.to_vector<double>()) all.push_back(v);
    }
    return all;
  };
  std::vector<double> whole = run({b});
  BOOST_TEST(is_close(run({shard_sequence(b, 0, 1), shard_sequence(b, 1, 2)}), whole, 1e-10));
  models::Dcformer model(small_config(), {1, 0});
  model.to(DType::f64);
  NoGrad off;
  BOOST_TEST(is_close({whole[0]}, {model.loss_sum(b).item() / 19}, 1e-12));
}

BOOST_AUTO_TEST_CASE(activation_checkpointing_changes_no_bit) {
  auto run = [&](bool on) {
    models::Dcformer model(small_config(), {1, 0});
    model.set_recompute(on);
    models::Trainer trainer(model, {}, 1.0);
    return trainer.step({small_batch(5)}, 1e-2).grad_norm;
  };
  BOOST_TEST(run(true) == run(false));
}

BOOST_AUTO_TEST_CASE(a_bad_loss_leaves_everything_untouched) {
  models::Dcformer model(small_config(), {1, 0});
  models::Trainer trainer(model, {}, 1.0);
  std::vector<nn::NamedTensor> parameters = nn::parameters(model);
  for (nn::NamedTensor& p : parameters) {
    if (p.name.starts_with("layers.1.feed_forward."))
      p.value.detach().fill(3e38);  // finite, but what is multiplied by it is not
  }
  std::vector<double> before = parameters[0].value.to_vector<double>();
  BOOST_TEST(throws_with([&] { trainer.step({small_batch(1, 1, 8)}, 1e-2); },
                         "at step 1; the first tensor with NaN or Inf is layers.1.ffn_out"));
  BOOST_TEST(is_close(parameters[0].value.to_vector<double>(), before, 0));
  BOOST_TEST(trainer.optimizer().steps() == 0);
}

// Also those that the step does not use: no batch here has token 255.
BOOST_AUTO_TEST_CASE(bad_weights_are_noticed_in_the_next_step) {
  models::Dcformer model(small_config(), {1, 0});
  models::Trainer trainer(model, {}, 1.0);
  trainer.step({small_batch(1, 1, 8)}, 1e-2);
  nn::parameters(model)[0].value.detach().sliced(0, 255, 256).fill(std::numeric_limits<double>::infinity());
  BOOST_TEST(
      throws_with([&] { trainer.step({small_batch(1, 1, 8)}, 1e-2); },
                  "the weights before step 2 contain NaN or Inf, first in tok_embeddings.weight; no update was made"));
}

// Its square would be an infinite second moment, and the weight would never move again.
BOOST_AUTO_TEST_CASE(a_gradient_whose_square_overflows_is_clipped_or_rejected) {
  for (const double clip : {0.0, 1.0}) {
    models::Dcformer model(small_config(), {1, 0});
    for (nn::NamedTensor& p : nn::parameters(model)) {
      if (p.name == "output.weight") p.value.detach().copy_(scale(p.value.detach(), 1e22));
    }
    models::Trainer trainer(model, {}, clip);
    const auto step = [&] { trainer.step({small_batch(1, 1, 8)}, 1e-2); };
    if (clip > 0) {
      step();
      for (const nn::NamedTensor& t : trainer.optimizer().state()) BOOST_TEST(nn::all_finite(t.value), t.name);
    } else {
      BOOST_TEST(throws_with(step, "beyond which its squares overflow the optimizer's second moments"));
      BOOST_TEST(trainer.optimizer().steps() == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_validation_can_be_stopped) {
  models::Dcformer model(small_config(), {1, 0});
  int polls = 0;
  const std::vector<models::Batch> batches(5, small_batch(1, 1, 8));
  BOOST_TEST(std::isnan(models::evaluate(model, batches, {}, [&] { return ++polls == 3; })));
  BOOST_TEST(polls == 3);
  BOOST_TEST(models::evaluate(model, batches, {}, [] { return false; }) == models::evaluate(model, batches));
}

// The caller decides between the two halves of a step.
BOOST_AUTO_TEST_CASE(a_discarded_step_leaves_no_trace) {
  auto train = [](bool with_discarded) {
    models::Dcformer model(small_config(), {1, 0});
    models::Trainer trainer(model, {}, 1.0);
    std::vector<double> all;
    for (int64_t step = 0; step < 4; ++step) {
      if (with_discarded) {
        trainer.forward_backward({small_batch(100 + step, 3, 16)});
        if (step != 2) trainer.discard();  // the next forward_backward() does so as well
      }
      const models::StepMetrics m = trainer.forward_backward({small_batch(step)});
      BOOST_TEST(!trainer.non_finite_reason(m, {small_batch(step)}));
      trainer.apply(1e-2);
      all.insert(all.end(), {m.loss, m.grad_norm});
    }
    BOOST_TEST(trainer.optimizer().steps() == 4);
    for (const nn::NamedTensor& p : nn::parameters(model)) {
      for (double v : p.value.to_vector<double>()) all.push_back(v);
    }
    return all;
  };
  BOOST_TEST((train(true) == train(false)));
}

BOOST_AUTO_TEST_CASE(an_update_needs_gradients) {
  models::Dcformer model(small_config(), {1, 0});
  models::Trainer trainer(model, {}, 1.0);
  BOOST_TEST(throws_with([&] { trainer.apply(1e-2); }, "apply() needs the gradients"));
  trainer.forward_backward({small_batch(1, 1, 8)});
  trainer.discard();
  BOOST_TEST(throws_with([&] { trainer.apply(1e-2); }, "apply() needs the gradients"));
  trainer.step({small_batch(1, 1, 8)}, 1e-2);
  BOOST_TEST(throws_with([&] { trainer.apply(1e-2); }, "apply() needs the gradients"));
  BOOST_TEST(trainer.optimizer().steps() == 1);
}

BOOST_AUTO_TEST_CASE(a_batch_without_targets_is_rejected) {
  models::Dcformer model(small_config(), {1, 0});
  models::Trainer trainer(model, {}, 1.0);
  models::Batch b = small_batch(1, 1, 8);
  b.at("targets").fill(-100);
  BOOST_TEST(throws_with([&] { trainer.step({b}, 1e-2); }, "no target that counts"));
}

BOOST_AUTO_TEST_SUITE_END()
