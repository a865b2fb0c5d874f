// The bytes that a step sends are those of its trace, for every rank of every mesh.
#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/cost/trace.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/folders/lora.h"
#include "tests/distributed/parity.h"
#include "tests/support/switches.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(communication)

namespace {
using Groups = std::array<dist::CommStats, 5>;
Groups stats_of(const dist::ProcessMesh& mesh) {
  return {mesh.tensor.stats(), mesh.context.stats(), mesh.replica_group.stats(), mesh.world.stats(), mesh.data.stats()};
}

// Every collective of every group, calls and bytes.
void expect_traffic(const Groups& before, const Groups& after, const models::StepVolume& want,
                    const std::string& what) {
  const dist::CommStats* traced[] = {&want.tensor, &want.context, &want.replicas, &want.world, &want.data};
  const char* names[] = {"tensor", "context", "replicas", "world", "data"};
  for (size_t g = 0; g < after.size(); ++g) {
    for (size_t c = 0; c < dist::kCollectives; ++c) {
      const std::string where = what + ", group " + names[g] + ", " + dist::name(static_cast<dist::Collective>(c));
      const int64_t bytes = after[g].bytes[c] - before[g].bytes[c], calls = after[g].calls[c] - before[g].calls[c];
      expect(bytes == traced[g]->bytes[c], where + ": counted " + std::to_string(bytes) + " bytes, the trace says " +
                                               std::to_string(traced[g]->bytes[c]));
      expect(calls == traced[g]->calls[c], where + ": counted " + std::to_string(calls) + " calls, the trace says " +
                                               std::to_string(traced[g]->calls[c]));
    }
  }
}

models::TrainingSetup setup_of(const Shape3& s, const dist::ProcessMesh& mesh,
                               const std::vector<models::Batch>& batches, DType dtype) {
  models::TrainingSetup setup{.samples = {},
                              .seq_len = 21,
                              .compute = dtype,
                              .mesh = {s.data, s.context, s.tensor},
                              .rank = {mesh.data.rank(), mesh.context.rank(), mesh.tensor.rank()}};
  for (const models::Batch& b : batches) setup.samples.push_back(b.samples());
  return setup;
}

void check_volume(const std::string& kind, const models::DcformerConfig& config, const Shape3& s,
                  DType dtype = DType::f32, bool recompute = false) {
  on_ranks(s, [&](const dist::Communicator& world) {
    dist::ProcessMesh mesh = dist::make_mesh(world, s.data, s.context, s.tensor);
    auto model = make_model(config, mesh, dtype == DType::bf16 ? DType::f32 : dtype, recompute);
    models::Trainer trainer(*model, {}, 1.0, mesh, dtype);
    const std::vector<models::Batch> batches = share_of(step_batch(config, 0, 8, 21), mesh);
    const Groups before = stats_of(mesh);
    trainer.forward_backward(batches);
    trainer.apply(1e-3);
    const Groups after = stats_of(mesh);
    models::TrainingSetup setup = setup_of(s, mesh, batches, dtype);
    setup.recompute = recompute;
    const models::StepCost cost = models::trace_step(models::DcformerSpec(config), setup);
    const std::string what = kind + ", " + str(s) + ", rank " + std::to_string(world.rank());
    expect_traffic(before, after, cost.volume, what);
    int64_t owned = 0;
    for (const nn::NamedTensor& p : trainer.optimizer().parameters()) owned += p.value.numel();
    expect(cost.memory.optimizer == static_cast<double>(2 * owned * std::max<int64_t>(4, size_of(dtype))),
           what + ": bytes of the moments that it owns");
  });
}
void check_volume(const std::string& kind, const Shape3& s, DType dtype, bool recompute) {
  check_volume(kind, parity_config(kind), s, dtype, recompute);
}
}  // namespace

BOOST_AUTO_TEST_CASE(counted_bytes_equal_the_trace) {
  for (const Shape3& s : {Shape3{2, 1, 1}, Shape3{1, 2, 1}, Shape3{1, 1, 2}, Shape3{1, 1, 3}, Shape3{3, 1, 1},
                          Shape3{1, 3, 1}, Shape3{1, 2, 2}, Shape3{2, 2, 1}, Shape3{2, 1, 2}, Shape3{1, 1, 4}}) {
    for (const char* kind :
         {"dcformer", "dcformer-g4", "dcpythia", "transformer", "dcformer-static-mgate", "llama", "grouped"}) {
      BOOST_TEST_CONTEXT(kind << " " << str(s)) { check_volume(kind, s, DType::f32, false); }
    }
  }
  for (const char* kind : {"dcformer", "dcformer-g4"}) check_volume(kind, {1, 2, 2}, DType::bf16, true);
  check_volume("dcformer", {2, 1, 2}, DType::bf16, false);
  check_volume("dcformer", {1, 2, 2}, DType::f64, true);
  check_volume("dcformer", {2, 2, 2}, DType::f64, false);
}

// Gradients of frozen parameters are not sent, those of LoRA are.
BOOST_AUTO_TEST_CASE(frozen_parameters_send_nothing) {
  const models::DcformerConfig config = parity_config("dcformer");
  for (const int64_t rank : {0, 3}) {
    for (const Shape3& s : {Shape3{2, 1, 1}, Shape3{3, 1, 1}}) {
      dist::run_thread_ranks(static_cast<int>(s.data), [&](const dist::Communicator& world) {
        const dist::ProcessMesh mesh = dist::make_mesh(world, s.data, 1, 1);
        const auto model = make_model(config, mesh);
        if (rank > 0) models::add_lora(*model, {.rank = rank, .targets = {"*.w2"}}, {5, 0}, mesh);
        nn::OptimizerOptions options;
        for (const char* text : rank > 0 ? std::vector{"* frozen", "*.lora_?.weight trained"}
                                         : std::vector{"* frozen", "*.dyn_w_proj.* trained"})
          options.groups.push_back(nn::parse_group(text));
        models::Trainer trainer(*model, options, 1.0, mesh);
        const std::vector<models::Batch> batches = share_of(step_batch(config, 0, 6, 21), mesh);
        const Groups before = stats_of(mesh);
        trainer.forward_backward(batches);
        trainer.apply(1e-3);
        models::TrainingSetup setup = setup_of(s, mesh, batches, DType::f64);
        setup.optimizer = options;
        if (rank > 0) setup.lora = models::LoraOptions{.rank = rank, .targets = {"*.w2"}};
        const models::StepVolume want = models::trace_step(models::DcformerSpec(config), setup).volume;
        expect(want.replicas.total() == 0 && want.world.total() > 0, "sent to all");
        expect_traffic(before, stats_of(mesh), want, "LoRA " + std::to_string(rank) + ", " + str(s));
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_switched_off_sends_nothing) {
  for (const SwitchedModel& m : switched_models(5)) {
    for (const Shape3& s : {Shape3{1, 1, 2}, Shape3{1, 2, 2}}) {
      BOOST_TEST_CONTEXT(m.name << " " << str(s)) { check_volume(m.name, m.config, s); }
    }
  }
}

BOOST_AUTO_TEST_CASE(one_process_sends_nothing) {
  const models::DcformerSpec spec(parity_config("dcformer"));
  BOOST_TEST(models::trace_step(spec, {.samples = {4}, .seq_len = 21}).volume.total() == 0);
}

// With a window W a rank sends the last W - 1 keys of each of its ranges to the rank of the next range, and no others.
BOOST_AUTO_TEST_CASE(windows_send_the_keys_that_are_seen) {
  models::DcformerConfig c = parity_config("dcformer");
  c.n_layer = 1;
  c.block_size = 1024;
  c.layer_windows = {100};
  const int64_t T = 1024, per_key = c.n_head * (2 * c.head_dim + 2 * (2 * c.profile.rank + 1)) * 4;
  const auto volume = [&](int64_t rank) {
    return models::trace_step(models::DcformerSpec(c),
                              {.samples = {3}, .seq_len = T, .mesh = {1, 4, 1}, .rank = {0, rank, 0}})
        .volume;
  };
  for (auto& [rank, runs_with_a_successor] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {2, 2}, {3, 1}}) {
    const models::StepVolume v = volume(rank);
    BOOST_TEST(v.context.bytes_of(dist::Collective::all_gather) == 3 * runs_with_a_successor * 99 * per_key);
  }
  c.layer_windows = {0};  // all ranks need the first range, no other rank the last
  const models::StepVolume v = volume(0);
  BOOST_TEST(v.context.bytes_of(dist::Collective::all_gather) == 3 * 3 * (T / 8) * per_key);
}

// One of 1024 processes.
BOOST_AUTO_TEST_CASE(large_layouts_are_planned_on_paper) {
  const models::DcformerSpec spec(models::preset("dcpythia-6.9b"));
  const models::StepVolume v =
      models::trace_step(spec, {.seq_len = 2048, .mesh = {64, 2, 8}, .rank = {63, 1, 7}}).volume;
  // Per block, forward and backward, four gathers and four sums of 1/16 of the rows: 7/8 of B T D elements each per
  // rank of the two context ranks; three more for the ends.
  double rows = 2048.0 / 2 * 4096 * 4 * 7 / 8;
  int64_t of_rows = v.tensor.bytes_of(dist::Collective::reduce_scatter);
  BOOST_TEST(static_cast<double>(of_rows) > (4 * 32 + 2) * rows);
  BOOST_TEST(v.replicas.total() > 0);
  BOOST_TEST(v.context.total() > 0);
}

BOOST_AUTO_TEST_SUITE_END()
