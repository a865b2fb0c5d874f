// Training in bf16 with f32 master weights.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/models/training/hold_in_16_bits.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/io/safetensors.h"
#include "braid/tensor/parallel.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mixed_precision)

namespace {

// Sequences with something to learn: arithmetic progressions.
models::Batch batch(int64_t step, int64_t rows = 4, int64_t length = 24) {
  std::vector<int64_t> ids, targets;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t start = (step * 37 + r * 11) % 97, stride = 1 + (step + r) % 3;
    for (int64_t t = 0; t < length; ++t) {
      ids.push_back((start + t * stride) % 100);
      targets.push_back((start + (t + 1) * stride) % 100);
    }
  }
  return models::text_batch(from_vector(ids, {rows, length}), from_vector(targets, {rows, length}));
}

struct Training {
  models::Dcformer model;
  models::Trainer trainer;
  explicit Training(std::optional<DType> compute, bool recompute = false,
                    const models::DcformerConfig& config = small_config())
      : model(config, {1, 0}), trainer((model.set_recompute(recompute), model), {}, 1.0, {}, compute) {}
  double step(int64_t number) { return trainer.step({batch(2 * number), batch(2 * number + 1)}, 3e-3).loss; }
  std::vector<double> values() const {
    std::vector<double> all;
    for (const nn::NamedTensor& p : trainer.parameters()) {
      for (double v : p.value.to_vector<double>()) all.push_back(v);
    }
    for (const nn::NamedTensor& s : trainer.optimizer().state()) {
      for (double v : s.value.to_vector<double>()) all.push_back(v);
    }
    return all;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_loss_follows_that_of_f32) {
  Training mixed(DType::bf16), exact({});
  double first = 0, a = 0, b = 0;
  for (int64_t step = 0; step < 60; ++step) {
    a = mixed.step(step);
    b = exact.step(step);
    if (step == 0) first = b;
    BOOST_TEST(std::fabs(a / b - 1) < 0.02, "step " << step << ": " << a << " and " << b);
  }
  double c = models::evaluate(mixed.model, {batch(1000, 16)}), d = models::evaluate(exact.model, {batch(1000, 16)});
  BOOST_TEST_MESSAGE("after 60 steps: training " << a << " and " << b << ", validation " << c << " and " << d);
  BOOST_TEST(b < 0.7 * first);  // it has learnt something
  BOOST_TEST(std::fabs(a / b - 1) < 0.01);
  BOOST_TEST(std::fabs(c / d - 1) < 0.01);
  BOOST_TEST(a != b);
}

BOOST_AUTO_TEST_CASE(masters_are_f32_and_the_model_holds_their_casts) {
  models::DcformerConfig config = small_config();
  config.attention = {"value-embedding"};
  Training t(DType::bf16, false, config);
  t.step(0);
  BOOST_TEST((t.model.dtype() == DType::bf16));
  std::vector<nn::NamedTensor> used = nn::parameters(t.model);
  const std::vector<nn::NamedTensor>& masters = t.trainer.parameters();
  BOOST_TEST_REQUIRE(used.size() == masters.size());
  for (size_t i = 0; i < used.size(); ++i) {
    BOOST_TEST(used[i].name == masters[i].name);
    BOOST_TEST((masters[i].value.dtype() == DType::f32), used[i].name);
    const bool table = used[i].name == "tok_embeddings.weight" || used[i].name.ends_with(".value-embedding.table");
    BOOST_TEST((used[i].value.dtype() == (table ? DType::f32 : DType::bf16)), used[i].name);
    BOOST_TEST(is_close(used[i].value, masters[i].value.detach().to(used[i].value.dtype()), 0));
  }
  for (const nn::NamedTensor& s : t.trainer.optimizer().state())
    BOOST_TEST((s.value.dtype() == (s.name == "steps" ? DType::i64 : DType::f32)), s.name);
}

BOOST_AUTO_TEST_CASE(every_master_gets_a_gradient_in_f32) {
  Training t(DType::bf16);
  int seen = 0;
  t.trainer.forward_backward({batch(0)});
  for (const models::LocalTensor& g : t.trainer.local_gradients()) {
    BOOST_TEST((g.values.dtype() == DType::f32), g.name);
    double sum = 0;
    for (double v : g.values.to_vector<double>()) sum += std::fabs(v);
    BOOST_TEST((std::isfinite(sum) && sum > 0), g.name);
    ++seen;
  }
  BOOST_TEST(seen == static_cast<int>(nn::parameters(t.model).size()));
}

// The gradient of two micro-batches is the f32 sum of theirs: no rounding to bf16 in between.
BOOST_AUTO_TEST_CASE(micro_batches_are_summed_in_f32) {
  auto gradients = [](const std::vector<models::Batch>& batches) {
    Training t(DType::bf16);
    std::vector<Tensor> out;
    t.trainer.forward_backward(batches);
    for (const models::LocalTensor& g : t.trainer.local_gradients()) out.push_back(g.values.clone());
    return out;
  };
  // Targets that count only in one of the two, so that the mean is over the same number of tokens.
  models::Batch a = batch(0), b = batch(1), none_a = batch(0), none_b = batch(1);
  none_a.at("targets").fill(-1);
  none_b.at("targets").fill(-1);
  std::vector<Tensor> both = gradients({a, b}), first = gradients({a, none_b}), second = gradients({none_a, b});
  for (size_t i = 0; i < both.size(); ++i) {
    // The mean of `both` is over twice the tokens.
    Tensor sum = scale(add(first[i], second[i]), 0.5);
    BOOST_TEST(is_close(both[i], sum, 1e-2));
  }
  bool finer = false;  // some sum is not a bf16 number
  for (double v : both.back().to_vector<double>())
    finer = finer || v != static_cast<double>(bfloat16(static_cast<float>(v)));
  BOOST_TEST(finer);
}

BOOST_AUTO_TEST_CASE(the_same_bits_at_any_number_of_threads_and_with_recomputation) {
  auto run = [](int n, bool recompute) {
    int before = threads();
    set_threads(n);
    Training t(DType::bf16, recompute);
    for (int64_t step = 0; step < 4; ++step) t.step(step);
    set_threads(before);
    return t.values();
  };
  std::vector<double> once = run(2, false);
  BOOST_TEST((run(2, false) == once));
  BOOST_TEST((run(1, false) == once));
  BOOST_TEST((run(3, true) == once));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_the_masters_and_goes_on_to_the_same_bits) {
  Training straight(DType::bf16), before(DType::bf16), after(DType::bf16);
  for (int64_t step = 0; step < 6; ++step) straight.step(step);
  for (int64_t step = 0; step < 3; ++step) before.step(step);
  TempFolder run;
  models::text::ByteTokenizer tokenizer;
  models::CheckpointWriter(run.path, 2).save(before.trainer, &tokenizer, {3, 24, 1.0, 1, 24, "data"}, "");
  std::filesystem::path folder = run.path / models::step_name(3);
  io::TensorFiles files((folder / "model.safetensors").string());
  for (const auto& t : files.tensors()) BOOST_TEST((t.dtype == DType::f32), t.name);
  models::load_checkpoint(folder, after.trainer);
  for (int64_t step = 3; step < 6; ++step) after.step(step);
  BOOST_TEST((after.values() == straight.values()));
  // The same checkpoint also starts a run in f32.
  Training exact({});
  models::load_checkpoint(folder, exact.trainer);
  BOOST_TEST(std::isfinite(exact.step(3)));
}

// bf16 weights without masters, rounded at random or to nearest.
struct Alone {
  models::Dcformer model;
  models::Trainer trainer;
  static models::Dcformer& held(models::Dcformer& model) {
    models::hold_in_16_bits(model);
    return model;
  }
  explicit Alone(bool at_random) : model(small_config(), {1, 0}), trainer(held(model), {}, 1.0, {}, DType::bf16) {
    if (at_random) trainer.round_stochastically({9, 0});
  }
};

BOOST_AUTO_TEST_CASE(weights_without_masters_follow_f32_where_they_are_rounded_at_random) {
  Training exact({});
  Alone random(true), nearest(false);
  const auto step = [](models::Trainer& trainer, int64_t number) {
    return trainer.step({batch(2 * number), batch(2 * number + 1)}, 3e-4).loss;
  };
  for (int64_t i = 0; i < 200; ++i) step(exact.trainer, i), step(random.trainer, i), step(nearest.trainer, i);
  const auto validation = [](const models::Model& model) {
    std::vector<models::Batch> batches;
    for (int64_t i = 0; i < 12; ++i) batches.push_back(batch(1000 + i, 16));
    return models::evaluate(model, batches);
  };
  const double want = validation(exact.model), a = validation(random.model), b = validation(nearest.model);
  BOOST_TEST_MESSAGE("after 200 steps: f32 " << want << ", at random " << a << ", to nearest " << b);
  BOOST_TEST(std::fabs(a / want - 1) < 0.01);
  BOOST_TEST(b / want > 1.05);
}

BOOST_AUTO_TEST_CASE(weights_without_masters_are_saved_in_16_bits_and_go_on_to_the_same_bits) {
  const auto values = [](const Alone& t) {
    std::vector<double> all;
    for (const nn::NamedTensor& p : t.trainer.parameters())
      for (double v : p.value.to_vector<double>()) all.push_back(v);
    return all;
  };
  const auto steps = [](Alone& t, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) t.trainer.step({batch(i)}, 3e-3);
  };
  Alone straight(true), before(true), after(true);
  steps(straight, 0, 6), steps(before, 0, 3);
  for (const nn::NamedTensor& p : before.trainer.parameters())
    BOOST_TEST((p.value.dtype() == (p.name == "tok_embeddings.weight" ? DType::f32 : DType::bf16)), p.name);
  for (const nn::NamedTensor& s : before.trainer.optimizer().state())
    BOOST_TEST((s.value.dtype() == (s.name == "steps" ? DType::i64 : DType::f32)), s.name);
  TempFolder run;
  models::text::ByteTokenizer tokenizer;
  models::CheckpointWriter(run.path, 2).save(before.trainer, &tokenizer, {3, 24, 1.0, 1, 24, "data"}, "");
  const std::filesystem::path folder = run.path / models::step_name(3);
  io::TensorFiles files((folder / "model.safetensors").string());
  for (const auto& t : files.tensors())
    BOOST_TEST((t.dtype == (t.name.starts_with("tok_embeddings") ? DType::f32 : DType::bf16)), t.name);
  models::load_checkpoint(folder, after.trainer);
  Training masters(DType::bf16);
  BRAID_CHECK_FAILS(models::load_checkpoint(folder, masters.trainer), ErrorKind::setting,
                    "expected weights in bf16, found f32");
  steps(after, 3, 6);
  BOOST_TEST((values(after) == values(straight)));
  BRAID_CHECK_FAILS(after.trainer.average_weights(0.9), ErrorKind::setting, "expected train.ema = 0");
}

BOOST_AUTO_TEST_CASE(a_sample_can_be_drawn_between_steps) {
  Training t(DType::bf16);
  t.step(0);
  {
    NoGrad off;
    models::KvCache cache = t.model.make_cache(8);
    Tensor ids = from_vector(std::vector<int64_t>{1, 2, 3}, {1, 3});
    Tensor logits = t.model.logits(t.model.hidden(ids, &cache));
    BOOST_TEST((logits.dtype() == DType::bf16));
    BOOST_TEST((cache.layers[0].keys().dtype() == DType::bf16));
    BOOST_TEST(nn::all_finite(logits));
  }
  BOOST_TEST(std::isfinite(t.step(1)));
}

BOOST_AUTO_TEST_SUITE_END()
