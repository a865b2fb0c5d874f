// Checkpoints hold whole tensors: a run saved at one layout goes on at any other.
#include <boost/test/unit_test.hpp>

#include "distributed/thread_ranks.h"
#include "models/checkpoint.h"
#include "tensor/io/safetensors.h"
#include "tests/distributed/parity.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

namespace {

constexpr int64_t kSamples = 8, kLength = 21, kBefore = 2, kAfter = 2;
const std::vector<Shape3> kLayouts = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {4, 1, 1},
                                      {1, 4, 1}, {1, 1, 4}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}};

struct Training {
  dist::Layout layout;
  std::unique_ptr<models::LanguageModel> model;
  models::Trainer trainer;
  text::ByteTokenizer tokenizer;
  explicit Training(const dist::Communicator& world, const Shape3& s)
      : layout(dist::make_layout(world, s.data, s.context, s.tensor)),
        model(make_model(parity_config("dcformer"), layout)),
        trainer(*model, {.weight_decay = 0.1, .decay = nn::OptimizerOptions::Decay::matrices}, 1.0, layout) {}
  double step(int64_t number) {
    return trainer.step(share_of(step_batch(model->config(), number, kSamples, kLength), layout), 1e-2).loss;
  }
};

void on_ranks(const Shape3& s, const std::function<void(const dist::Communicator&)>& body) {
  dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), body);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resume)

BOOST_AUTO_TEST_CASE(all_pairs_of_layouts) {
  const Record& want = reference("dcformer", kBefore + kAfter, kSamples, kLength);
  for (const Shape3& before : kLayouts) {
    TempFolder run;
    on_ranks(before, [&](const dist::Communicator& world) {
      Training t(world, before);
      for (int64_t i = 0; i < kBefore; ++i) t.step(i);
      models::save_checkpoint(run.path, t.trainer, t.tokenizer, {kBefore, 0, 0, 1, kLength, "data"}, "", 2);
    });
    std::filesystem::path folder = run.path / models::step_name(kBefore);
    BOOST_REQUIRE(models::why_invalid(folder) == "");
    for (const Shape3& after : kLayouts) {
      BOOST_TEST_CONTEXT("saved at " << str(before) << ", resumed at " << str(after)) {
        on_ranks(after, [&](const dist::Communicator& world) {
          Training t(world, after);
          models::load_checkpoint(folder, t.trainer);
          // Gathered again, every number is the one in the files.
          models::WholeState state = t.trainer.whole_state();
          if (world.rank() == 0) {
            io::TensorFiles weights((folder / "model.safetensors").string());
            io::TensorFiles optimizer((folder / "trainer/optimizer.safetensors").string());
            expect(weights.tensors().size() == state.weights.size(), "number of weights");
            expect(optimizer.tensors().size() == state.optimizer.size(), "number of optimizer tensors");
            for (const auto& w : state.weights) expect_equal(w.value, weights.load(w.name), w.name);
            for (const auto& o : state.optimizer) expect_equal(o.value, optimizer.load(o.name), o.name);
          }
          for (int64_t i = kBefore; i < kBefore + kAfter; ++i)
            expect_close({t.step(i)}, {want.losses[static_cast<size_t>(i)]}, 1e-10,
                         "loss of step " + std::to_string(i));
        });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_full_disk_of_rank_0_is_everybodys_error) {
  TempFolder run;
  run.write("file", "not a folder");
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    t.step(0);
    expect_error(
        [&] {
          models::save_checkpoint(run.path / "file", t.trainer, t.tokenizer, {1, 0, 0, 1, kLength, "data"}, "", 2);
        },
        ErrorKind::output, "older checkpoints are intact");
    t.step(1);  // all ranks are still together
  });
}

BOOST_AUTO_TEST_CASE(states_that_do_not_fit_are_refused_on_every_rank) {
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    models::WholeState one = t.trainer.whole_state();
    models::WholeState state;
    for (auto& w : one.weights) state.weights.push_back(w);
    if (world.rank() == 0) state.weights[0].value = zeros({3, 3}, DType::f64);
    if (world.rank() == 1) state.weights = {{"tok_embeddings.weight", zeros({3, 3}, DType::f64)}};
    expect_error([&] { t.trainer.load(state, "the file", "the other"); }, ErrorKind::input,
                 "tok_embeddings.weight has shape (3, 3)");
  });
}

BOOST_AUTO_TEST_SUITE_END()
