// Training of a part of the parameters on one process and on many: weights from a folder, frozen groups, LoRA.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/folders/adapter.h"
#include "braid/models/folders/init_from.h"
#include "braid/models/folders/lora.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "tests/distributed/parity.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(fine_tuning)

namespace {

constexpr int64_t kSteps = 4, kSamples = 8, kLength = 21;
const std::vector<Shape3> kLayouts = {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {1, 1, 4}};

// A folder with the plain Transformer of a kind.
const std::filesystem::path& origin_of(const std::string& kind) {
  static std::map<std::string, TempFolder> folders;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  const bool there = folders.contains(kind);
  const std::filesystem::path& path = folders[kind].path;
  models::DcformerConfig config = parity_config(kind);
  config.use_dcmha = false;
  if (!there) models::save_model(*make_model(config, {}), nullptr, path);
  return path;
}

std::vector<double> unsharded(const models::LocalTensor& t, const dist::Communicator& world) {
  Tensor full = zeros({numel(t.shape)}, DType::f64);
  for (const dist::Span& s : t.spans)
    full.sliced(0, s.full, s.full + s.count)
        .copy_(t.values.reshaped({t.values.numel()}).sliced(0, s.local, s.local + s.count));
  return world.all_reduce(full).to_vector<double>();
}

struct Result {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<double>> state;  // weights, LoRA and moments
};

struct Case {
  std::string kind;
  int64_t rank = 0;  // of LoRA
  std::vector<std::string> groups = {};
  bool upcycle = false;
  std::vector<std::string> targets = {"*"};  // of LoRA
};
const std::vector<Case> kCases = {
    {.kind = "dcformer", .groups = {"* frozen_until=2", "*.dyn_w_proj.* trained lr=4", "*norm* frozen"}},
    {.kind = "dcformer-g4", .groups = {"* frozen", "*.dyn_w_proj.* trained"}, .upcycle = true},
    {.kind = "dcformer", .upcycle = true},
    {.kind = "dcpythia", .rank = 2, .groups = {"* frozen", "*.lora_?.weight trained"}},
    {.kind = "dcformer-static-mgate", .rank = 3, .groups = {"* frozen", "*.lora_?.weight trained"}},
    {.kind = "llama-folder", .rank = 2, .groups = {"* frozen", "*.lora_?.weight trained"}},
    {.kind = "llama-folder",
     .rank = 2,
     .groups = {"* frozen", "*.lora_?.weight trained"},
     .targets = {"q_proj", "v_proj", "down_proj"}},
};

struct Training {
  dist::ProcessMesh mesh;
  models::DcformerConfig config;
  std::unique_ptr<models::Model> model;
  std::unique_ptr<models::Trainer> trainer;
  models::text::ByteTokenizer tokenizer;
  Training(const Case& c, const dist::Communicator& world, const Shape3& s)
      : mesh(dist::make_mesh(world, s.data, s.context, s.tensor)), config(parity_config(c.kind)) {
    if (c.upcycle) {
      const auto spec =
          models::inspect_model(origin_of(c.kind))
              .spec->with({{"use_dcmha", "true"}, {"profile.num_groups", std::to_string(config.profile.num_groups)}});
      model = models::init_from(origin_of(c.kind), *spec, {9, 0}, DType::f64, mesh).model;
    } else {
      model = make_model(config, mesh);
    }
    if (c.rank > 0) models::add_lora(*model, {.rank = c.rank, .alpha = 4, .targets = c.targets}, {5, 0}, mesh);
    nn::OptimizerOptions options{.weight_decay = 0.1, .decay = nn::OptimizerOptions::Decay::matrices};
    for (const std::string& text : c.groups) options.groups.push_back(nn::parse_group(text));
    trainer = std::make_unique<models::Trainer>(*model, options, 1.0, mesh);
  }
  models::StepMetrics step(int64_t number) {
    return trainer->step(share_of(step_batch(config, number, kSamples, kLength), mesh), 1e-2);
  }
  void finish(Result& result, int64_t from) {
    for (int64_t i = from; i < kSteps; ++i) {
      const models::StepMetrics metrics = step(i);
      result.losses.push_back(metrics.loss), result.norms.push_back(metrics.grad_norm);
    }
    const models::LocalState state = trainer->local_state();
    for (const auto* list : {&state.weights, &state.adapter, &state.optimizer})
      for (const models::LocalTensor& t : *list)
        if (t.name != "steps") result.state[t.name] = unsharded(t, mesh.world);
  }
};

void expect_same(const Result& got, const Result& want, const std::string& what) {
  expect_close(got.losses, want.losses, 1e-12, what + ", losses");
  expect_close(got.norms, want.norms, 1e-10, what + ", gradient norms");
  expect(got.state.size() == want.state.size(), what + ", number of tensors");
  for (const auto& [name, values] : want.state) {
    const bool moments = name.ends_with(".first") || name.ends_with(".second");
    expect_close(got.state.at(name), values, moments ? 1e-8 : 1e-9, what + ", " + name);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_layout_trains_as_one_process_does) {
  for (const Case& c : kCases) {
    Result want;
    Training(c, {}, {}).finish(want, 0);
    for (const Shape3& s : kLayouts) {
      if ((c.kind == "dcpythia" || c.kind == "llama-folder") && s.tensor == 1)
        continue;  // what LoRA adds is about tensor ranks
      const std::string what = c.kind + ", " + str(s);
      on_ranks(s, [&](const dist::Communicator& world) {
        Result got;
        Training(c, world, s).finish(got, 0);
        expect_same(got, want, what);
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_resumes_at_another_layout) {
  for (const Case& c : {kCases[0], kCases[3], kCases[5], kCases[6]}) {
    Result want;
    Training(c, {}, {}).finish(want, 0);
    for (const auto& [before, after] : {std::pair{Shape3{2, 1, 2}, Shape3{1, 1, 1}}, {{1, 1, 1}, {1, 2, 2}}}) {
      const TempFolder run;
      const auto ranks = [](const Shape3& s) { return static_cast<int>(s.data * s.context * s.tensor); };
      dist::run_thread_ranks(ranks(before), [&, s = before](const dist::Communicator& world) {
        Training t(c, world, s);
        for (int64_t i = 0; i < 3; ++i) t.step(i);
        models::CheckpointWriter(run.path, 2).save(*t.trainer, &t.tokenizer, {3, 0, 0, 1, kLength, "data"}, "");
      });
      dist::run_thread_ranks(ranks(after), [&, s = after](const dist::Communicator& world) {
        Training t(c, world, s);
        models::load_checkpoint(run.path / models::step_name(3), *t.trainer);
        Result got;
        t.finish(got, 3);
        got.losses.insert(got.losses.begin(), want.losses.begin(), want.losses.end() - 1);
        got.norms.insert(got.norms.begin(), want.norms.begin(), want.norms.end() - 1);
        expect_same(got, want, c.kind + ", saved at " + str(before) + ", resumed at " + str(s));
      });
    }
  }
}

// But for the last bit in the builds for sanitizers (-O1), where 2 tensor ranks gave 2.2e-16.
BOOST_AUTO_TEST_CASE(an_upcycled_model_has_the_loss_of_its_origin_over_ranks_too) {
  for (const std::string kind : {"dcformer", "dcformer-g4", "dcpythia"}) {
    models::DcformerConfig config = parity_config(kind);
    config.use_dcmha = false;
    for (const Shape3& s : {Shape3{1, 1, 1}, Shape3{1, 2, 1}, Shape3{1, 1, 2}}) {
      dist::run_thread_ranks(static_cast<int>(s.context * s.tensor), [&](const dist::Communicator& world) {
        const dist::ProcessMesh mesh = dist::make_mesh(world, 1, s.context, s.tensor);
        const auto loss = [&](const models::Model& model) {
          return models::evaluate(model, {step_batch(config, 0, kSamples, kLength)}, mesh);
        };
        const auto spec =
            models::inspect_model(origin_of(kind)).spec->with({{"use_dcmha", "true"}, {"compose_init", "identity"}});
        const auto composed = models::init_from(origin_of(kind), *spec, {9, 0}, DType::f64, mesh);
        const auto plain = models::load_model(origin_of(kind), {.mesh = mesh});
        expect(std::abs(loss(*composed.model) / loss(*plain.model) - 1) <=
                   (kAddressSanitizer || kThreadSanitizer ? 1e-15 : 0),
               kind + ", " + str(s));
      });
    }
  }
}

// LoRA of a folder of its own, whose queries, keys and values are three layers of the file and one of the model.
BOOST_AUTO_TEST_CASE(an_adapter_is_added_to_the_shards_of_each_rank) {
  const std::filesystem::path& base = origin_of("llama-folder");
  const TempFolder folder;
  const models::LoadedModel whole = models::load_model(base);
  models::add_lora(*whole.model, {.rank = 2, .alpha = 3, .targets = {"*"}}, {5, 0});
  for (nn::NamedTensor& p : nn::parameters(*whole.model))
    if (p.name.ends_with("lora_B.weight"))
      p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({6, 0}, p.name.c_str())));
  models::save_adapter(*whole.model, folder.path);
  const models::Batch batch = step_batch(parity_config("llama-folder"), 0, kSamples, kLength);
  const double expected = models::evaluate(*whole.model, {batch}, {});
  for (const bool merged : {true, false}) {
    for (const Shape3& s : kLayouts) {
      on_ranks(s, [&](const dist::Communicator& world) {
        const dist::ProcessMesh mesh = dist::make_mesh(world, s.data, s.context, s.tensor);
        const auto loaded = models::load_model(folder.path, {.mesh = mesh, .merge_adapter = merged, .base = base});
        const double loss = models::evaluate(*loaded.model, share_of(batch, mesh), mesh);
        expect_close({loss}, {expected}, 1e-12, "adapter, " + str(s));
      });
    }
  }
}

// Frozen parameters are neither sent nor gathered.
BOOST_AUTO_TEST_CASE(frozen_parameters_cost_no_communication) {
  const auto bytes = [](const std::vector<std::string>& groups) {
    int64_t sent = 0;
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      Training t({.kind = "transformer", .groups = groups}, world, {2, 1, 1});
      t.step(0);
      const dist::CommStats before = world.stats();
      t.step(1);
      const dist::CommStats after = world.stats();
      if (world.rank() == 0)
        sent = after.bytes_of(dist::Collective::reduce_scatter) - before.bytes_of(dist::Collective::reduce_scatter);
    });
    return sent;
  };
  const int64_t all = bytes({}), norm = bytes({"* frozen", "norm.* trained"});
  BOOST_TEST(norm == 24 / 2 * 8);
  BOOST_TEST(all > 100 * norm);
  BOOST_TEST(bytes({"* frozen_until=9", "norm.* trained"}) == norm);
}

BOOST_AUTO_TEST_SUITE_END()
