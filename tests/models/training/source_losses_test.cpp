// The loss of each source of a step, from the forward pass that the step makes: the same on every layout of ranks.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/training/trainer.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(source_losses)

namespace {

const std::vector<int64_t> kSourcesOfSamples = {0, 2, 2, 0};

// Four samples, some of whose targets are not counted; none of source 1.
models::Batch batch() {
  constexpr int64_t B = 4, T = 12;
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < B * T; ++i) {
    ids.push_back((i * 31 + i * i) % 200);
    targets.push_back(i % 7 == 3 ? -100 : (i * 17) % 200);
  }
  models::Batch all = models::text_batch(from_vector(ids, {B, T}), from_vector(targets, {B, T}));
  all.add({models::kSources, from_vector(kSourcesOfSamples, {B})});
  return all;
}

std::unique_ptr<models::Dcformer> model_of(const dist::ProcessMesh& mesh) {
  auto model = std::make_unique<models::Dcformer>(small_config(), RandomKey{1, 0}, mesh);
  model->to(DType::f64);
  return model;
}

// The loss of a source by a pass over its samples alone.
double expected(int64_t source) {
  const auto model = model_of({});
  std::vector<models::Batch> samples;
  for (int64_t i = 0; i < 4; ++i)
    if (kSourcesOfSamples[static_cast<size_t>(i)] == source) samples.push_back(batch().slice(i, i + 1));
  return models::evaluate(*model, samples);
}

models::StepMetrics step(const dist::ProcessMesh& mesh, int64_t micro_batches, int64_t sources) {
  const auto model = model_of(mesh);
  models::Trainer trainer(*model, {}, 1.0, mesh);
  trainer.separate_sources(sources);
  const int64_t size = 4 / micro_batches;
  std::vector<models::Batch> mine;
  for (int64_t m = 0; m < micro_batches; ++m) {
    const dist::Range r = dist::even_partition(size, mesh.data.size()).single(mesh.data.rank());
    mine.push_back(batch().slice(m * size + r.begin, m * size + r.end));
  }
  return trainer.forward_backward(mine);
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_source_has_the_loss_of_its_samples) {
  for (const int64_t micro_batches : {1, 2, 4}) {
    const models::StepMetrics metrics = step({}, micro_batches, 3);
    BOOST_REQUIRE(metrics.source_losses.size() == 3);
    BOOST_TEST(is_close({metrics.source_losses[0]}, {expected(0)}, 1e-12));
    BOOST_TEST(std::isnan(metrics.source_losses[1]));
    BOOST_TEST(is_close({metrics.source_losses[2]}, {expected(2)}, 1e-12));
    BOOST_TEST(std::abs(metrics.source_losses[0] - metrics.source_losses[2]) > 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(the_loss_of_the_step_is_not_changed_by_it) {
  const models::StepMetrics with = step({}, 1, 3), without = step({}, 1, 0);
  BOOST_TEST(with.loss == without.loss);
  BOOST_TEST(with.grad_norm == without.grad_norm);
  BOOST_TEST(without.source_losses.empty());
}

BOOST_AUTO_TEST_CASE(every_layout_of_four_ranks_has_the_same_losses) {
  const std::vector<double> want = {expected(0), expected(2)};
  for (const auto& [data, context, tensor] :
       {std::tuple{4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}})
    dist::run_thread_ranks(4, [&, data = data, context = context, tensor = tensor](const dist::Communicator& world) {
      const models::StepMetrics metrics = step(dist::make_mesh(world, data, context, tensor), 1, 3);
      const std::vector<double> got = {metrics.source_losses.at(0), metrics.source_losses.at(2)};
      if (!is_close(got, want, 1e-12) || !std::isnan(metrics.source_losses[1]))
        fail(ErrorKind::misuse, str("wrong losses on ", data, " x ", context, " x ", tensor));
    });
}

BOOST_AUTO_TEST_CASE(batches_must_name_known_sources) {
  BRAID_CHECK_FAILS(step({}, 1, 2), ErrorKind::input, "a sample is from source 2: expected 0 to 1");
}

BOOST_AUTO_TEST_CASE(batches_must_name_one_source_for_each_sample) {
  const auto model = model_of({});
  models::Trainer trainer(*model, {}, 1.0);
  trainer.separate_sources(3);
  const models::Batch good = batch();
  for (const Tensor& sources :
       {zeros({3}, DType::i64), zeros({5}, DType::i64), zeros({4, 1}, DType::i64), zeros({4}, DType::i32)}) {
    models::Batch bad = models::text_batch(good.at("input_ids"), good.at("targets"));
    bad.add({models::kSources, sources});
    BRAID_CHECK_FAILS(trainer.forward_backward({bad}), ErrorKind::input, "sources must be i64 (4), found ");
  }
}

BOOST_AUTO_TEST_SUITE_END()
