// The bytes that a step sends are those of the formulas, for every rank of every mesh.
#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/folders/lora.h"
#include "tests/distributed/parity.h"
#include "tests/support/switches.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(communication)

namespace {
models::StepVolume step_volume(const models::DcformerConfig& config, const models::MeshShape& mesh,
                               const models::MeshCoord& rank, const models::StepShape& step) {
  return models::DcformerSpec(config).step_volume(mesh, rank, step);
}

void expect_traffic(const dist::CommStats& before, const dist::CommStats& after, const dist::CommStats& want,
                    const std::string& what) {
  for (auto c : {dist::Collective::reduce_scatter, dist::Collective::all_gather, dist::Collective::all_to_all}) {
    int64_t got = after.bytes_of(c) - before.bytes_of(c);
    expect(got == want.bytes_of(c), what + ", " + dist::name(c) + ": counted " + std::to_string(got) +
                                        " bytes, the formula says " + std::to_string(want.bytes_of(c)));
  }
}

void check_volume(const std::string& kind, const models::DcformerConfig& config, const Shape3& s,
                  DType dtype = DType::f32, bool recompute = false) {
  dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), [&](const dist::Communicator& world) {
    dist::ProcessMesh mesh = dist::make_mesh(world, s.data, s.context, s.tensor);
    auto model = make_model(config, mesh, dtype == DType::bf16 ? DType::f32 : dtype, recompute);
    models::Trainer trainer(*model, {}, 1.0, mesh, dtype);
    std::vector<models::Batch> batches = share_of(step_batch(config, 0, 8, 21), mesh);
    auto now = [&] {
      return std::array{mesh.tensor.stats(), mesh.context.stats(), mesh.replica_group.stats(), mesh.world.stats()};
    };
    auto before = now();
    trainer.step(batches, 1e-3);
    auto after = now();
    models::StepShape step{.seq_len = 21, .bytes_per_element = size_of(dtype), .recompute = recompute};
    for (const models::Batch& b : batches) step.samples.push_back(b.samples());
    models::StepVolume want = step_volume(config, {s.data, s.context, s.tensor},
                                          {mesh.data.rank(), mesh.context.rank(), mesh.tensor.rank()}, step);
    std::string what = kind + ", " + str(s) + ", rank " + std::to_string(world.rank()) + ", group ";
    expect_traffic(before[0], after[0], want.tensor, what + "tensor");
    expect_traffic(before[1], after[1], want.context, what + "context");
    expect_traffic(before[2], after[2], want.replicas, what + "replicas");
    expect_traffic(before[3], after[3], want.world, what + "world");

    models::RankParameters held =
        models::rank_parameters(models::shape_only_model(config), {s.data, s.context, s.tensor}, mesh.tensor.rank());
    int64_t elements = 0, owned = 0;
    for (const nn::NamedTensor& p : nn::parameters(*model)) elements += p.value.numel();
    for (const nn::NamedTensor& p : trainer.optimizer().parameters()) owned += p.value.numel();
    expect(held.held == elements, what + "elements held");
    expect(std::abs(held.owned - owned) <= 4,
           what + "elements owned: " + std::to_string(owned) + ", the formula says " + std::to_string(held.owned));
  });
}
void check_volume(const std::string& kind, const Shape3& s, DType dtype, bool recompute) {
  check_volume(kind, parity_config(kind), s, dtype, recompute);
}
}  // namespace

BOOST_AUTO_TEST_CASE(counted_bytes_equal_the_formulas) {
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
        const auto before = mesh.world.stats();
        trainer.step(share_of(step_batch(config, 0, 6, 21), mesh), 1e-3);
        const auto after = mesh.world.stats();
        models::StepShape step{.samples = {6 / s.data}, .seq_len = 21, .bytes_per_element = 8, .module = model.get()};
        step.trained = [&](const std::string& name) {
          return nn::rule_of(options.groups, name).frozen_until != nn::kNeverTrained;
        };
        const models::StepVolume want = step_volume(config, {s.data, 1, 1}, {mesh.data.rank(), 0, 0}, step);
        expect(want.replicas.total() == 0 && want.world.total() > 0, "sent to all");
        expect_traffic(before, after, want.world, "LoRA " + std::to_string(rank) + ", " + str(s));
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
  BOOST_TEST(step_volume(parity_config("dcformer"), {}, {}, {.samples = {4}, .seq_len = 21}).total() == 0);
  BOOST_TEST(models::rank_parameters(models::shape_only_model(parity_config("dcformer")), {}, 0).held ==
             models::count_parameters(parity_config("dcformer")).total);
}

// With a window W a rank sends the last W - 1 keys of each of its ranges to the rank of the next range, and no others.
BOOST_AUTO_TEST_CASE(windows_send_the_keys_that_are_seen) {
  models::DcformerConfig c = parity_config("dcformer");
  c.n_layer = 1;
  c.layer_windows = {100};
  const int64_t T = 1024, per_key = c.n_head * (2 * c.head_dim + 2 * (2 * c.profile.rank + 1)) * 4;
  for (auto& [rank, runs_with_a_successor] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {2, 2}, {3, 1}}) {
    models::StepVolume v = step_volume(c, {1, 4, 1}, {0, rank, 0}, {.samples = {3}, .seq_len = T});
    BOOST_TEST(v.context.bytes_of(dist::Collective::all_gather) == 3 * runs_with_a_successor * 99 * per_key);
  }
  c.layer_windows = {0};  // all ranks need the first range, no other rank the last
  models::StepVolume v = step_volume(c, {1, 4, 1}, {0, 0, 0}, {.samples = {3}, .seq_len = T});
  BOOST_TEST(v.context.bytes_of(dist::Collective::all_gather) == 3 * 3 * (T / 8) * per_key);
}

// A plan for 1024 processes takes no more than arithmetic.
BOOST_AUTO_TEST_CASE(large_layouts_are_planned_on_paper) {
  models::DcformerConfig c = models::preset("dcpythia-6.9b");
  models::StepShape step{.samples = {1}, .seq_len = 2048};
  models::StepVolume v = step_volume(c, {64, 2, 8}, {63, 1, 7}, step);
  // Per block, forward and backward, four gathers and four sums of 1/16 of the rows: 7/8 of B T D elements each per
  // rank of the two context ranks; three more for the ends.
  double rows = 2048.0 / 2 * 4096 * 4 * 7 / 8;
  int64_t of_rows = v.tensor.bytes_of(dist::Collective::reduce_scatter);
  BOOST_TEST(static_cast<double>(of_rows) > (4 * 32 + 2) * rows);
  BOOST_TEST(v.replicas.total() > 0);
  BOOST_TEST(v.context.total() > 0);
}

BOOST_AUTO_TEST_SUITE_END()
