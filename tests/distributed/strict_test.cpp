// StrictBits: the weights after some steps have the same bits on every mesh, for any micro-batches and threads and on
// every instruction set; gradients are one tree over the samples of a step.
#include "braid/models/data/local_samples.h"
#include "braid/models/folders/lora.h"
#include "braid/models/training/hold_in_16_bits.h"
#include "tests/distributed/strict_support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(strict)

namespace {

constexpr int64_t kSteps = 4, kSamples = 7, kLength = 37;

struct Run {
  std::string kind = "dcformer";
  Shape3 mesh = {};
  int64_t of_micro_batch = kSamples;  // samples of a rank that the trainer gets at once
  int threads = 1;
  DType compute = DType::f32;
  std::string rule = "adamw";
  bool documents = false;
  int64_t steps = kSteps;
  bool recompute = false;
  double dropout = 0;
  bool stochastic = false;  // bf16 weights without masters
};

StrictLayout layout_of(const Run& run) {
  return {run.mesh, run.of_micro_batch, run.threads, run.compute, run.rule, run.steps};
}

Bits trained(const Run& run) {
  const models::DcformerConfig config = parity_config(run.kind);
  const auto make = [&](const dist::ProcessMesh& mesh) {
    auto model = make_model(config, mesh, DType::f32, run.recompute);
    model->set_dropout(run.dropout);
    if (run.stochastic) models::hold_in_16_bits(*model);
    return model;
  };
  const auto batch = [&](int64_t step) {
    models::Batch all = step_batch(config, step, kSamples, kLength);
    if (run.documents) all = with_documents(all);
    if (run.dropout > 0) all.add({models::kSampleKeys, arange(kSamples).to(DType::i64)});
    return all;
  };
  return test::trained({.make = make, .batch = batch, .stochastic = run.stochastic}, layout_of(run));
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_bit_depends_on_the_layout) {
  const Bits want = trained({});
  BOOST_TEST(std::isfinite(want.metrics.back()));
  for (const int64_t ranks : {2, 3, 4, 7}) BOOST_TEST(trained({.mesh = {ranks}}) == want, ranks << " ranks");
  for (const int64_t samples : {1, 2, 3}) BOOST_TEST(trained({.of_micro_batch = samples}) == want);
  for (const int threads : {2, 3}) BOOST_TEST(trained({.mesh = {2}, .of_micro_batch = 2, .threads = threads}) == want);
}

BOOST_AUTO_TEST_CASE(no_bit_of_any_model_depends_on_it) {
  for (const std::string& kind : parity_kinds()) {
    BOOST_TEST_CONTEXT(kind) {
      const Bits want = trained({.kind = kind});
      cpu::use_instruction_set("portable");
      cpu::attention::use_variant("portable");
      BOOST_TEST(trained({.kind = kind, .mesh = {3}, .of_micro_batch = 2, .threads = 2}) == want);
      cpu::use_instruction_set("");
      cpu::attention::use_variant("");
    }
  }
}

BOOST_AUTO_TEST_CASE(no_bit_depends_on_the_instruction_set) {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const bool documents : {false, true}) {
      Run run{.compute = compute, .documents = documents};
      const Bits want = trained(run);
      on_every_set([&] { BOOST_TEST(trained(run) == want); });
      run.mesh = {3}, run.of_micro_batch = 1, run.threads = 2;
      on_every_set([&] { BOOST_TEST(trained(run) == want); });
    }
}

BOOST_AUTO_TEST_CASE(no_bit_depends_on_who_updates_a_matrix) {
  const Bits want = trained({.rule = "muon"});
  on_every_set([&] { BOOST_TEST(trained({.mesh = {2}, .rule = "muon"}) == want); });
  BOOST_TEST(trained({.mesh = {5}, .rule = "muon"}) == want);
}

namespace {
// The loss of validation, of ranks that each have the whole model and samples of their own.
double validation_loss(const Run& run) {
  double loss = 0;
  on_strict_ranks(layout_of(run), [&](const dist::Communicator& world, const dist::ProcessMesh& mesh) {
    const models::DcformerConfig config = parity_config(run.kind);
    const dist::ProcessMesh each = dist::make_mesh(world, world.size(), 1, 1);
    const auto model = make_model(config, mesh, run.compute);
    models::WholeParameters whole(*model, nn::parameters(*model), mesh.tensor);
    whole.attach();
    const models::Batch all = step_batch(config, 0, kSamples, kLength);
    std::vector<models::Batch> batches;
    for (const auto& samples : models::text::validation_samples(kSamples, run.of_micro_batch, 0, each)) {
      const int64_t first = samples.empty() ? 0 : samples[0];
      batches.push_back(all.slice(first, first + std::ssize(samples)));
    }
    const double found = models::evaluate(*model, batches, each);
    if (world.rank() == 0) loss = found;
  });
  return loss;
}
}  // namespace

BOOST_AUTO_TEST_CASE(validation_has_one_value) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const double want = validation_loss({.compute = compute});
    BOOST_TEST(std::isfinite(want));
    for (const Shape3& mesh : {Shape3{3}, Shape3{8}, Shape3{1, 2, 2}, Shape3{1, 1, 3}, Shape3{2, 1, 2}})
      BOOST_TEST(validation_loss({.mesh = mesh, .of_micro_batch = 2, .threads = 2, .compute = compute}) == want,
                 str(mesh));
    on_every_set([&] { BOOST_TEST(validation_loss({.mesh = {2}, .of_micro_batch = 1, .compute = compute}) == want); });
  }
}

BOOST_AUTO_TEST_CASE(a_data_rank_has_consecutive_samples_of_the_step) {
  on_strict_ranks({.mesh = {3}}, [](const dist::Communicator&, const dist::ProcessMesh& mesh) {
    const auto batches = models::text::step_positions(100, 3, 2, mesh);
    const int64_t first = 100 + 2 * mesh.data.rank();
    expect(batches == std::vector<std::vector<int64_t>>{{first, first + 1}}, "two positions in one batch");
  });
}

BOOST_AUTO_TEST_CASE(without_the_scope_layouts_differ) {
  const auto norms = [](const Shape3& s) {
    std::vector<double> found;
    on_ranks(s, [&](const dist::Communicator& world) {
      const dist::ProcessMesh mesh = dist::make_mesh(world, s.data, s.context, s.tensor);
      const Record record = train(parity_config("dcformer"), mesh, 2, 8, kLength, DType::f32);
      if (world.rank() == 0) found = record.norms;
    });
    return found;
  };
  const std::vector<double> one = norms({});
  for (const Shape3& mesh : {Shape3{2, 1, 1}, Shape3{1, 2, 1}, Shape3{1, 1, 2}})
    BOOST_TEST((norms(mesh) != one), str(mesh));
}

BOOST_AUTO_TEST_CASE(losses_of_sources_are_those_of_one_process) {
  const auto losses = [](const Shape3& s) {
    std::vector<double> found;
    on_ranks(s, [&](const dist::Communicator& world) {
      const StrictBits scope;
      const models::DcformerConfig config = parity_config("dcformer");
      const dist::ProcessMesh mesh = dist::make_mesh(world, s.data, s.context, s.tensor);
      const auto model = make_model(config, mesh, DType::f32);
      models::Trainer trainer(*model, parity_optimizer(), 0.5, mesh);
      trainer.separate_sources(3);
      models::Batch all = step_batch(config, 0, kSamples, kLength);
      all.add({models::kSources, from_vector(std::vector<int64_t>{0, 1, 0, 1, 1, 0, 1}, {kSamples})});
      const std::vector<double> means = trainer.step({all}, 1e-2).source_losses;
      if (world.rank() == 0) found = means;
    });
    return found;
  };
  const std::vector<double> want = losses({}), got = losses({1, 2, 2});
  BOOST_TEST((std::isnan(want.at(2)) && std::isnan(got.at(2))));
  for (size_t i = 0; i < 2; ++i) BOOST_TEST(got[i] == want[i]);
}

// More context ranks than samples of a data rank, rounds of tensor ranks that are not full, shards of unequal size.
BOOST_AUTO_TEST_CASE(no_bit_depends_on_tensor_and_context_ranks) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const Bits want = trained({.compute = compute});
    const Shape3 meshes[] = {{1, 1, 2}, {1, 1, 3}, {1, 1, 5}, {1, 2, 1}, {1, 8, 1}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}};
    for (const Shape3& mesh : meshes)
      BOOST_TEST(trained({.mesh = mesh, .of_micro_batch = 3, .compute = compute}) == want, str(mesh));
  }
}

// Pieces of ZeRO-1, shards of rows and of columns, owners of matrices.
BOOST_AUTO_TEST_CASE(no_bit_of_stochastic_rounding_depends_on_the_layout) {
  for (const char* rule : {"adamw", "muon"}) {
    Run run{.compute = DType::bf16, .rule = rule, .stochastic = true};
    const Bits want = trained(run);
    run.stochastic = false;
    BOOST_TEST(trained(run).weights != want.weights);
    run.stochastic = true, run.of_micro_batch = 2, run.threads = 2;
    on_every_set([&] { BOOST_TEST(trained(run) == want); });
    for (const Shape3& mesh : {Shape3{3, 1, 1}, Shape3{1, 1, 2}, Shape3{2, 1, 2}, Shape3{1, 2, 3}}) {
      run.mesh = mesh;
      BOOST_TEST(trained(run) == want, rule << " " << str(mesh));
    }
  }
}

BOOST_AUTO_TEST_CASE(no_bit_of_any_model_depends_on_tensor_ranks) {
  for (const std::string& kind : parity_kinds()) {
    BOOST_TEST_CONTEXT(kind) {
      const DType compute = kind == "grouped" || kind == "gemma" ? DType::bf16 : DType::f32;
      BOOST_TEST(trained({.kind = kind, .mesh = {1, 1, 2}, .compute = compute, .steps = 2}) ==
                 trained({.kind = kind, .compute = compute, .steps = 2}));
    }
  }
}

BOOST_AUTO_TEST_CASE(nor_with_other_rules_of_training) {
  const Run runs[] = {{.rule = "muon"}, {.documents = true}, {.recompute = true}, {.dropout = 0.2}};
  for (Run run : runs) {
    const Bits want = trained(run);
    run.mesh = {1, 2, 2}, run.threads = 2;
    BOOST_TEST(trained(run) == want, run.rule << run.documents << run.recompute << run.dropout);
  }
}

BOOST_AUTO_TEST_CASE(two_hundred_steps_leave_no_difference) {
  BOOST_TEST(trained({.mesh = {1, 1, 2}, .steps = 200}) == trained({.steps = 200}));
}

BOOST_AUTO_TEST_CASE(lora_of_a_part_of_a_weight_is_rejected_over_tensor_ranks) {
  dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
    const StrictBits scope;
    const dist::ProcessMesh mesh = dist::make_mesh(world, 1, 1, 2);
    const auto model = make_model(parity_config("llama-folder"), mesh, DType::f32);
    models::add_lora(*model, {.rank = 2, .targets = {"q_proj"}}, {}, mesh);
    expect_error([&] { models::Trainer(*model, parity_optimizer(), 0.5, mesh); }, ErrorKind::setting,
                 "expected parallel.tensor = 1, or lora.targets that are whole weights");
  });
}

BOOST_AUTO_TEST_SUITE_END()
