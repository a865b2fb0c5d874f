// Training, checkpoints, generation and parallel layouts on a device: the same values as on the CPU, everything where
// it belongs, and one read-back per step.
#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/inference/generate.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/rules/adamw.h"
#include "tests/device/stand_in.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(device_training)

namespace {

models::Batch batch(int64_t step, int64_t rows = 4) { return small_batch(step, rows, 24); }

// A run on a device, whole or a rank's part of it.
struct Training {
  dist::ProcessMesh mesh;
  std::unique_ptr<models::LanguageModel> model;
  std::unique_ptr<models::Trainer> trainer;

  Training(Device device, DType compute, const dist::ProcessMesh& where = {}, bool recompute = false,
           const nn::OptimizerOptions& options = {})
      : mesh(where) {
    auto made = std::make_unique<models::Dcformer>(small_config(), RandomKey{1, 0}, mesh);
    made->to(device);
    made->set_recompute(recompute);
    model = std::move(made);
    trainer = std::make_unique<models::Trainer>(*model, options, 1.0, mesh, compute);
  }
  double step(int64_t number) {
    auto mine = [&](models::Batch b) {
      auto part = dist::even_partition(4, mesh.data.size()).single(mesh.data.rank());
      return b.slice(part.begin, part.end);
    };
    return trainer->step({mine(batch(2 * number)), mine(batch(2 * number + 1))}, 3e-3).loss;
  }
  const models::Dcformer& whole() const { return dynamic_cast<const models::Dcformer&>(*model); }
};

std::vector<double> losses(Training&& t, int64_t steps = 3) {
  std::vector<double> out;
  for (int64_t i = 0; i < steps; ++i) out.push_back(t.step(i));
  out.push_back(
      models::evaluate(*t.model, t.mesh.data.rank() == 0 ? std::vector{batch(99)} : std::vector{batch(99, 0)}, t.mesh));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_numbers_are_those_of_the_cpu) {
  for (DType compute : {DType::f32, DType::bf16}) {
    for (bool recompute : {false, true}) {
      BOOST_TEST(is_close(losses({kStandIn, compute, {}, recompute}), losses({kCpu, compute}),
                          compute == DType::f32 ? 1e-5 : 1e-2));
    }
  }
}

BOOST_AUTO_TEST_CASE(muon_gives_the_numbers_of_the_cpu) {
  const nn::OptimizerOptions muon{.name = "muon"};
  for (const DType compute : {DType::f32, DType::bf16})
    BOOST_TEST(is_close(losses({kStandIn, compute, {}, false, muon}), losses({kCpu, compute, {}, false, muon}),
                        compute == DType::f32 ? 1e-5 : 1e-2));
}

BOOST_AUTO_TEST_CASE(everything_is_on_the_device) {
  Training t(kStandIn, DType::bf16);
  t.trainer->forward_backward({batch(0)});
  for (const models::LocalTensor& g : t.trainer->local_gradients()) BOOST_TEST((g.values.device() == kStandIn), g.name);
  t.trainer->apply(1e-3);
  for (const nn::NamedTensor& p : nn::parameters(*t.model)) BOOST_TEST((p.value.device() == kStandIn), p.name);
  for (const nn::NamedTensor& p : t.trainer->parameters()) BOOST_TEST((p.value.device() == kStandIn), p.name);
  for (const nn::NamedTensor& s : t.trainer->optimizer().state())
    BOOST_TEST((s.name == "steps" || s.value.device() == kStandIn), s.name);
  BOOST_TEST(memory_by_use(kStandIn).at_peak_of(MemoryUse::gradients) > 0);
}

// Nothing of a step waits for the device but the metrics at its end.
BOOST_AUTO_TEST_CASE(a_step_reads_back_once) {
  for (DType compute : {DType::f32, DType::bf16}) {
    for (bool recompute : {false, true}) {
      for (const char* rule : {"adamw", "muon"}) {
        Training t(kStandIn, compute, {}, recompute, {.name = rule});
        const int64_t before = read_backs();
        t.step(0);
        BOOST_TEST(read_backs() - before == 1, rule);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bad_ids_are_found_before_they_reach_the_device) {
  Training t(kStandIn, DType::f32);
  models::Batch b = batch(0);
  b.at("input_ids").sliced(0, 1, 2).sliced(1, 3, 4).fill(258);
  BOOST_TEST(throws_with([&] { t.trainer->step({b}, 1e-3); }, "token id 258 at position (1, 3) is out of range"));
  b = batch(0);
  b.at("targets").sliced(0, 0, 1).sliced(1, 2, 3).fill(300);
  BOOST_TEST(throws_with([&] { t.trainer->step({b}, 1e-3); }, "target 300 at position (0, 2) is out of range"));
}

// Before any parameter is updated.
BOOST_AUTO_TEST_CASE(a_gradient_on_another_device_changes_no_parameter) {
  nn::NamedTensor a{"a", full({2}, 1, DType::f32, kStandIn)}, b{"b", full({2}, 1, DType::f32, kStandIn)};
  require_grad(a.value), require_grad(b.value);
  nn::AdamW o({a, b}, {});
  set_grad(a.value, full({2}, 1, DType::f32, kStandIn));
  BOOST_TEST(throws_with(
      [&] {
        set_grad(b.value, full({2}, 1));
        o.step();
      },
      "gradient"));
  BOOST_TEST(is_close(a.value.to_vector<double>(), {1, 1}, 0));
  BOOST_TEST(o.steps() == 0);
}

BOOST_AUTO_TEST_CASE(checkpoints_go_from_device_to_device) {
  models::text::ByteTokenizer tokenizer;
  for (Device from : {kCpu, kStandIn}) {
    Training saved(from, DType::bf16);
    saved.step(0);
    TempFolder run;
    models::CheckpointWriter(run.path, 2).save(*saved.trainer, &tokenizer, {1, 8, 1.0, 1, 24, "data"}, "");
    for (Device to : {kCpu, kStandIn}) {
      Training loaded(to, DType::bf16);
      models::load_checkpoint(run.path / models::step_name(1), *loaded.trainer);
      for (size_t i = 0; i < saved.trainer->parameters().size(); ++i) {
        const nn::NamedTensor &a = saved.trainer->parameters()[i], &b = loaded.trainer->parameters()[i];
        BOOST_TEST((b.value.device() == to));
        BOOST_TEST(is_close(b.value.detach().to(kCpu), a.value.detach().to(kCpu), 0), a.name);
      }
      if (to == from) BOOST_TEST(loaded.step(1) == saved.step(1));
      if (to == from) models::load_checkpoint(run.path / models::step_name(1), *saved.trainer);
    }
  }
}

BOOST_AUTO_TEST_CASE(generation_and_tasks_on_the_device) {
  Training device(kStandIn, DType::f32), cpu(kCpu, DType::f32);
  for (int64_t i = 0; i < 2; ++i) device.step(i), cpu.step(i);
  const std::vector<int32_t> prompt = {5, 9, 40};
  auto text = [&](const Training& t) { return models::generate(t.whole(), prompt, 20, {.temperature = 0}).tokens; };
  BOOST_TEST(text(device) == text(cpu), boost::test_tools::per_element());
  models::text::ByteTokenizer tokenizer;
  std::vector<models::text::TaskSample> tasks;
  for (int64_t i = 0; i < 4; ++i)
    tasks.push_back(models::text::make_task_sample(models::text::Vocabulary::held_out, 0, i));
  BOOST_TEST(models::grade_tasks(device.whole(), tokenizer, tasks).accuracy() ==
             models::grade_tasks(cpu.whole(), tokenizer, tasks).accuracy());
}

BOOST_AUTO_TEST_CASE(parallel_layouts_stage_through_the_cpu) {
  const std::vector<double> want = losses({kCpu, DType::f32});
  struct Sizes {
    int64_t data, context, tensor;
  };
  for (const Sizes& s : {Sizes{2, 1, 1}, Sizes{1, 2, 1}, Sizes{1, 1, 2}, Sizes{1, 2, 2}}) {
    for (DType compute : {DType::f32, DType::bf16}) {
      BOOST_TEST_CONTEXT(str(compute) << " data " << s.data << " context " << s.context << " tensor " << s.tensor) {
        std::vector<double> got;
        dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), [&](const dist::Communicator& world) {
          Training t(kStandIn, compute, dist::make_mesh(world, s.data, s.context, s.tensor));
          std::vector<double> mine = losses(std::move(t));
          if (world.rank() == 0) got = mine;
        });
        BOOST_TEST(is_close(got, want, compute == DType::f32 ? 1e-5 : 1e-2));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
