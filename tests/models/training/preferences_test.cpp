// Direct preference optimization against plain loops over logits in f64, and its gradients against finite differences.
#include "braid/models/training/preferences.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/gradcheck.h"
#include "braid/autograd/ops.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/folders/lora.h"
#include "braid/models/training/trainer.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(preferences)

namespace {

using models::PreferenceOptions;

constexpr int64_t kLength = 12;
const std::vector<PreferenceOptions> kOptions = {
    {},
    {.beta = 0.7},
    {.beta = 0.7, .label_smoothing = 0.2},
    {.beta = 2.5, .length_normalised = true},
    {.beta = 0.7, .sft_weight = 0.3},
    {.beta = 2.5, .label_smoothing = 0.1, .length_normalised = true, .sft_weight = 2}};

// Pairs whose answers have different lengths and begin at different places.
models::Batch pairs(int64_t count, int64_t salt = 0) {
  std::vector<int64_t> ids, targets;
  std::vector<double> reference;
  for (int64_t i = 0; i < 2 * count; ++i) {
    const int64_t begin = 3 + (i / 2 + salt) % 3, end = begin + 2 + (5 * i + salt) % 6;
    for (int64_t t = 0; t < kLength; ++t) {
      ids.push_back((i * 13 + t * t + 31 * t + salt) % 200);
      targets.push_back(t >= begin && t < end ? (i * 29 + 7 * t + salt) % 200 : -100);
    }
    reference.push_back(20 + 3.25 * static_cast<double>((i * 7 + salt) % 5));
  }
  models::Batch batch =
      models::text_batch(from_vector(ids, {2 * count, kLength}), from_vector(targets, {2 * count, kLength}));
  batch.add({models::kReferenceLosses, from_vector(reference, {2 * count})});
  return batch;
}

std::unique_ptr<models::Dcformer> model_of(DType type = DType::f64) {
  auto model = std::make_unique<models::Dcformer>(small_config(), RandomKey{1, 0});
  model->to(type);
  return model;
}

struct Expected {
  std::vector<double> log_p;  // of each sequence
  double loss = 0, preferred = 0, chosen = 0, rejected = 0;
};

// The formulas of the paper, number by number.
Expected expected(const models::LanguageModel& model, const models::Batch& batch, const PreferenceOptions& o) {
  const NoGrad off;
  const std::vector<double> logits = model.logits(model.hidden(batch.at("input_ids"))).to_vector<double>();
  const std::vector<int64_t> targets = batch.at("targets").to_vector<int64_t>();
  const std::vector<double> reference = batch.at(models::kReferenceLosses).to_vector<double>();
  const auto V = static_cast<size_t>(model.vocab_size());
  Expected found;
  std::vector<double> length;
  for (size_t i = 0; i < reference.size(); ++i) {
    double sum = 0, tokens = 0;
    for (size_t t = 0; t < kLength; ++t) {
      const size_t row = i * kLength + t;
      if (targets[row] < 0) continue;
      double total = 0;
      for (size_t v = 0; v < V; ++v) total += std::exp(logits[row * V + v]);
      sum += std::log(std::exp(logits[row * V + static_cast<size_t>(targets[row])]) / total);
      tokens += 1;
    }
    found.log_p.push_back(sum), length.push_back(tokens);
  }
  for (size_t i = 0; i < reference.size(); i += 2) {
    const auto reward = [&](size_t at) {
      const double ratio = found.log_p[at] - -reference[at];
      return o.beta * (o.length_normalised ? ratio / length[at] : ratio);
    };
    const double margin = reward(i) - reward(i + 1), right = 1 / (1 + std::exp(-margin)),
                 wrong = 1 / (1 + std::exp(margin));
    found.loss += -(1 - o.label_smoothing) * std::log(right) - o.label_smoothing * std::log(wrong) -
                  o.sft_weight * found.log_p[i] / length[i];
    found.preferred += margin > 0;
    found.chosen += reward(i), found.rejected += reward(i + 1);
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(loss_and_rewards_are_those_of_plain_loops) {
  const auto model = model_of();
  const models::Batch batch = pairs(5);
  for (const PreferenceOptions& options : kOptions) {
    const Expected right = expected(*model, batch, options);
    const models::PreferenceObjective objective(options);
    BOOST_TEST(objective.count(*model, batch) == 5);
    BOOST_TEST(is_close({objective.loss_sum(*model, batch).item()}, {right.loss}, 1e-10));
    const std::vector<double> losses =
        models::sequence_losses(*model, batch.at("input_ids"), batch.at("targets")).to_vector<double>();
    models::PreferenceSums of_pairs;
    of_pairs.add(batch, losses, options);
    const models::PreferenceValues sums = of_pairs.over({});
    double chosen = 0, rejected = 0;
    for (size_t i = 0; i < 10; ++i) {
      BOOST_TEST(is_close({-losses[i]}, {right.log_p[i]}, 1e-10));
      (i % 2 == 0 ? chosen : rejected) += right.log_p[i];
    }
    BOOST_TEST(sums.pairs == 5);
    BOOST_TEST(sums.preferred == right.preferred);
    BOOST_TEST((right.preferred > 0 && right.preferred < 5));
    BOOST_TEST(is_close({sums.loss, sums.chosen_reward, sums.rejected_reward},
                        {right.loss, right.chosen, right.rejected}, 1e-10));
    BOOST_TEST(is_close({sums.chosen_log_probability, sums.rejected_log_probability}, {chosen, rejected}, 1e-10));
  }
}

// The derivative by the log-probabilities, against the formula in the header and finite differences.
BOOST_AUTO_TEST_CASE(gradients_are_those_of_the_formulas) {
  const std::vector<double> losses = {21, 18.5, 30, 31.5, 12, 25}, reference = {20, 20, 29, 33, 14, 14},
                            tokens = {3, 5, 2, 2, 7, 4};
  const Tensor q = from_vector(reference, {6}), n = from_vector(tokens, {6});
  for (const PreferenceOptions& o : kOptions) {
    const auto loss_of = [&](const std::vector<Tensor>& in) { return models::preference_loss(in[0], q, n, o); };
    const GradcheckResult found = gradcheck(loss_of, {from_vector(losses, {6})});
    BOOST_TEST(found.error < 1e-7, found.where);
    Tensor x = from_vector(losses, {6});
    require_grad(x);
    backward(loss_of({x}));
    const std::vector<double> dx = grad(x).to_vector<double>();
    for (size_t i = 0; i < 6; i += 2) {
      const auto per = [&](size_t at) { return o.length_normalised ? o.beta / tokens[at] : o.beta; };
      const double z = per(i) * (reference[i] - losses[i]) - per(i + 1) * (reference[i + 1] - losses[i + 1]);
      const double dz = 1 / (1 + std::exp(-z)) - (1 - o.label_smoothing);
      BOOST_TEST(is_close({dx[i], dx[i + 1]}, {-per(i) * dz + o.sft_weight / tokens[i], per(i + 1) * dz}, 1e-10));
    }
  }
}

// The largest gradient of each parameter, against differences of the plain loops.
BOOST_AUTO_TEST_CASE(the_gradient_reaches_every_weight) {
  const PreferenceOptions options = kOptions.back();
  const auto model = model_of();
  const models::Batch batch = pairs(2);
  models::Trainer trainer(*model, {}, 0);
  trainer.minimise(std::make_shared<models::PreferenceObjective>(options));
  const models::StepMetrics metrics = trainer.forward_backward({batch});
  BOOST_TEST(metrics.tokens == 2);
  BOOST_TEST(is_close({metrics.loss}, {expected(*model, batch, options).loss / 2}, 1e-10));
  std::map<std::string, std::vector<double>> gradients;
  for (const models::LocalTensor& g : trainer.local_gradients()) gradients[g.name] = g.values.to_vector<double>();
  int checked = 0;
  for (const nn::NamedTensor& p : nn::parameters(*model)) {
    const std::vector<double>& gradient = gradients.at(p.name);
    const auto at = static_cast<size_t>(std::ranges::max_element(gradient, {}, [](double v) { return std::abs(v); }) -
                                        gradient.begin());
    auto* value = p.value.detach().mutable_data<double>() + at;
    const double old = *value, step = 2e-5;
    const auto slope = [&](double h) {
      const auto loss_with = [&](double v) {
        *value = v;
        return expected(*model, batch, options).loss / 2;
      };
      return (loss_with(old + h) - loss_with(old - h)) / (2 * h);
    };
    const double numeric = (4 * slope(step / 2) - slope(step)) / 3;  // an error of step^4
    *value = old;
    BOOST_TEST(is_close({gradient[at]}, {numeric}, 1e-6), p.name);
    checked += std::abs(numeric) > 1e-6;
  }
  BOOST_TEST(checked > 10);
}

// However the pairs of a step are spread over micro-batches and data ranks.
BOOST_AUTO_TEST_CASE(a_step_is_the_mean_over_its_pairs) {
  const models::Batch all = pairs(4);
  const auto step = [&](const dist::ProcessMesh& mesh, int64_t micro_batches) {
    models::Dcformer model(small_config(), {1, 0}, mesh);
    model.to(DType::f64);
    models::Trainer trainer(model, {}, 0, mesh);
    trainer.minimise(std::make_shared<models::PreferenceObjective>(kOptions[2]));
    std::vector<models::Batch> mine;
    const int64_t size = 4 / micro_batches, here = size / mesh.data.size();
    for (int64_t m = 0; m < micro_batches; ++m) {
      const int64_t first = m * size + here * mesh.data.rank();
      mine.push_back(all.slice(2 * first, 2 * (first + here)));
    }
    const models::StepMetrics metrics = trainer.forward_backward(mine);
    const auto require = [](bool ok, const char* what) { check(ok, "preferences", what); };  // on any thread
    require(metrics.tokens == 4, "the pairs of the step");
    require(std::ssize(metrics.sample_losses) == 8 / mesh.data.size(), "the sequences of the rank");
    models::PreferenceSums of_pairs;
    std::span<const double> losses = metrics.sample_losses;
    for (const models::Batch& batch : mine) {
      of_pairs.add(batch, losses.first(static_cast<size_t>(batch.samples())), kOptions[2]);
      losses = losses.subspan(static_cast<size_t>(batch.samples()));
    }
    const models::PreferenceValues sums = of_pairs.over(mesh.data);
    require(static_cast<bool>(is_close({metrics.loss}, {sums.loss / 4}, 1e-10)), "the loss of the sums");
    return std::vector<double>{metrics.loss, metrics.grad_norm, sums.chosen_reward, sums.preferred};
  };
  const std::vector<double> whole = step({}, 1);
  BOOST_TEST(is_close(step({}, 2), whole, 1e-10));
  BOOST_TEST(is_close(step({}, 4), whole, 1e-10));
  dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
    if (!is_close(step(dist::make_mesh(world, 2, 1, 1), 2), whole, 1e-10))
      fail(ErrorKind::misuse, str("rank ", world.rank(), " has another step"));
  });
}

// LoRA at its start adds 0, so that a run with it has the reference of one without, to the bit; and a model that is its
// own reference prefers neither answer.
BOOST_AUTO_TEST_CASE(new_lora_is_the_model_without_it) {
  const models::Batch batch = pairs(3);
  const auto losses = [&](const models::LanguageModel& model) {
    const NoGrad off;
    return models::sequence_losses(model, batch.at("input_ids"), batch.at("targets")).to_vector<double>();
  };
  const auto model = model_of(DType::f32), with = model_of(DType::f32);
  models::add_lora(*with, {.rank = 2, .targets = {"*"}}, {7, 0});
  BOOST_TEST(losses(*with) == losses(*model), boost::test_tools::per_element());
  models::Batch own = models::text_batch(batch.at("input_ids"), batch.at("targets"));
  own.add({models::kReferenceLosses, from_vector(losses(*model), {6})});
  models::Trainer trainer(*with, {.groups = {nn::parse_group("* frozen"), nn::parse_group("*.lora_* trained")}}, 0);
  trainer.minimise(std::make_shared<models::PreferenceObjective>(PreferenceOptions()));
  const models::StepMetrics metrics = trainer.step({own}, 1e-2);
  BOOST_TEST(metrics.sample_losses == losses(*model), boost::test_tools::per_element());
  BOOST_TEST(is_close({metrics.loss}, {std::log(2.0)}, 1e-6));
  models::PreferenceSums of_pairs;
  of_pairs.add(own, metrics.sample_losses, {});
  const models::PreferenceValues sums = of_pairs.over({});
  BOOST_TEST(sums.preferred == 1.5);
  BOOST_TEST(sums.chosen_reward == 0);
  const double after = trainer.step({own}, 1e-2).loss;
  BOOST_TEST(after < metrics.loss);
}

BOOST_AUTO_TEST_CASE(what_is_no_batch_of_pairs_is_rejected) {
  const auto model = model_of();
  models::Trainer trainer(*model, {}, 0);
  trainer.minimise(std::make_shared<models::PreferenceObjective>(PreferenceOptions()));
  BRAID_CHECK_FAILS(trainer.forward_backward({pairs(2).slice(0, 3)}), ErrorKind::input, "expected (4), found f64 (3)");
  BRAID_CHECK_FAILS(trainer.forward_backward({small_batch(1)}), ErrorKind::input, "no tensor 'reference_losses'");
  const models::Batch blank = models::PreferenceObjective({}).blank_batch(*model, 3, 8);
  BOOST_TEST(blank.at("input_ids").shape() == Shape({6, 8}));
  BOOST_TEST(blank.at(models::kReferenceLosses).shape() == Shape({6}));
}

BOOST_AUTO_TEST_SUITE_END()
