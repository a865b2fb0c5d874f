// The moving average of the weights on many ranks: that of one process, in checkpoints and in what the model computes;
// resumes at the same mesh to the same bits and at every other one.
#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "tests/distributed/parity.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(weight_average)

namespace {

constexpr int64_t kSteps = 4, kBefore = 2, kSamples = 8, kLength = 21, kUnseen = 1000;
constexpr double kDecay = 0.2;  // of the second step on; (1 + t) / (10 + t) is below it in the first
const std::vector<Shape3> kLayouts = {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {4, 1, 1}, {2, 1, 2}, {1, 2, 2}, {1, 1, 4}};

using Values = std::map<std::string, std::vector<double>>;

struct Training {
  models::DcformerConfig config;
  dist::ProcessMesh mesh;
  std::unique_ptr<models::LanguageModel> model;
  models::Trainer trainer;
  models::text::ByteTokenizer tokenizer;
  // compute: bf16 for mixed precision
  Training(const std::string& kind, const dist::Communicator& world, const Shape3& s, double decay = kDecay,
           DType compute = DType::f64, const std::vector<std::string>& groups = {})
      : config(parity_config(kind)),
        mesh(dist::make_mesh(world, s.data, s.context, s.tensor)),
        model(make_model(config, mesh, compute == DType::bf16 ? DType::f32 : compute)),
        trainer(*model, options(groups), 1.0, mesh, compute) {
    trainer.average_weights(decay);
  }
  static nn::OptimizerOptions options(const std::vector<std::string>& groups) {
    nn::OptimizerOptions made{.weight_decay = 0.1, .decay = nn::OptimizerOptions::Decay::matrices};
    for (const std::string& text : groups) made.groups.push_back(nn::parse_group(text));
    return made;
  }
  void steps(int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) trainer.step(share_of(step_batch(config, i, kSamples, kLength), mesh), 1e-2);
  }
  double validation() {
    return models::evaluate(*model, share_of(step_batch(config, kUnseen, kSamples, kLength), mesh), mesh);
  }
  double averaged_validation() {
    double loss = 0;
    trainer.with_average([&] { loss = validation(); });
    return loss;
  }
  void save(const std::filesystem::path& run, int64_t step) {
    models::CheckpointWriter(run, 2).save(trainer, &tokenizer, {step, 0, 0, 1, kLength, "data"}, "");
  }
};

Values values_in(const std::filesystem::path& file) {
  Values all;
  const io::SafetensorsFile tensors(file.string());
  for (const io::TensorInfo& info : tensors.tensors()) all[info.name] = tensors.load(info.name).to_vector<double>();
  return all;
}
std::filesystem::path folder(const TempFolder& run, int64_t step) { return run.path / models::step_name(step); }
std::filesystem::path weights(const TempFolder& run, int64_t step) { return folder(run, step) / "model.safetensors"; }
std::filesystem::path state(const TempFolder& run, int64_t step) {
  return folder(run, step) / "trainer/optimizer.safetensors";
}

void expect_values(const Values& got, const Values& want, double tolerance, const std::string& what) {
  expect(got.size() == want.size(), what + ": number of tensors");
  for (const auto& [name, values] : want) expect_close(got.at(name), values, tolerance, what + ", " + name);
}
bool same_bytes(const TempFolder& a, const TempFolder& b, int64_t step) {
  const std::string name = models::step_name(step) + "/";
  return a.read(name + "model.safetensors") == b.read(name + "model.safetensors") &&
         a.read(name + "trainer/optimizer.safetensors") == b.read(name + "trainer/optimizer.safetensors");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_layout_averages_as_one_process_does) {
  for (const std::string kind : {"dcformer", "dcformer-static-mgate", "llama-folder"}) {
    TempFolder one, bare;
    Training whole(kind, {}, {}), without(kind, {}, {}, 0);
    whole.steps(0, kSteps), without.steps(0, kSteps);
    whole.save(one.path, kSteps), without.save(bare.path, kSteps);
    const double validation = whole.averaged_validation(), trained = whole.validation();
    expect(std::fabs(validation - trained) > 1e-6, "the average is the trained weights");
    const Values averages = values_in(weights(one, kSteps)), last = values_in(weights(bare, kSteps));
    for (const Shape3& s : kLayouts) {
      BOOST_TEST_CONTEXT(kind << ", " << str(s)) {
        TempFolder run;
        on_ranks(s, [&](const dist::Communicator& world) {
          Training t(kind, world, s);
          t.steps(0, kSteps);
          expect_close({t.averaged_validation()}, {validation}, 1e-11, "validation loss of the average");
          expect_close({t.validation()}, {trained}, 1e-11, "validation loss of the trained weights");
          t.save(run.path, kSteps);
          world.barrier();
          // The folder loads as the average, sharded over the ranks that load it.
          const models::LoadedModel loaded =
              models::load_model(folder(run, kSteps), {.dtype = DType::f64, .mesh = t.mesh, .tokenizer = false});
          const auto batches = share_of(step_batch(t.config, kUnseen, kSamples, kLength), t.mesh);
          expect_close({models::evaluate(*loaded.model, batches, t.mesh)}, {validation}, 1e-11, "the loaded model");
        });
        expect_values(values_in(weights(run, kSteps)), averages, 1e-10, "averages");
        Values unaveraged;
        for (const auto& [name, values] : values_in(state(run, kSteps)))
          if (name.ends_with(models::Trainer::kUnaveraged)) unaveraged[name] = values;
        Values expected;
        for (const auto& [name, values] : values_in(state(one, kSteps)))
          if (name.ends_with(models::Trainer::kUnaveraged)) expected[name] = values;
        expect_values(unaveraged, expected, 1e-10, "trained weights");
        if (kind == "llama-folder") continue;  // whose files name the tensors of a parameter
        for (const auto& [name, values] : last)
          expect_close(unaveraged.at(name + models::Trainer::kUnaveraged), values, 1e-10, "weights without averages");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_resume_at_the_same_mesh_has_the_same_bits) {
  for (const DType compute : {DType::f64, DType::bf16}) {
    for (const Shape3& s : {Shape3{1, 1, 1}, Shape3{2, 1, 1}, Shape3{1, 1, 2}, Shape3{2, 1, 2}, Shape3{1, 2, 2}}) {
      BOOST_TEST_CONTEXT(str(compute) << ", " << str(s)) {
        TempFolder whole, part, resumed;
        on_ranks(s, [&](const dist::Communicator& world) {
          Training straight("dcformer", world, s, kDecay, compute), before("dcformer", world, s, kDecay, compute);
          Training after("dcformer", world, s, kDecay, compute);
          straight.steps(0, kBefore);
          straight.averaged_validation();  // leaves no trace
          straight.steps(kBefore, kSteps);
          straight.save(whole.path, kSteps);
          before.steps(0, kBefore);
          before.save(part.path, kBefore);
          world.barrier();
          after.steps(7, 8);  // another state
          models::load_checkpoint(folder(part, kBefore), after.trainer);
          expect_close({after.averaged_validation()}, {before.averaged_validation()}, 0, "validation after the load");
          after.steps(kBefore, kSteps);
          after.save(resumed.path, kSteps);
        });
        BOOST_TEST(same_bytes(resumed, whole, kSteps));
      }
    }
  }
}

// A checkpoint holds complete averages: any mesh resumes from any other.
BOOST_AUTO_TEST_CASE(a_resume_at_another_mesh) {
  const std::vector<Shape3> layouts = {{1, 1, 1}, {4, 1, 1}, {1, 1, 2}, {2, 1, 2}, {1, 2, 1}};
  TempFolder one;
  Training whole("dcformer", {}, {});
  whole.steps(0, kSteps);
  whole.save(one.path, kSteps);
  const Values averages = values_in(weights(one, kSteps)), moments = values_in(state(one, kSteps));
  for (const Shape3& before : layouts) {
    TempFolder part;
    on_ranks(before, [&](const dist::Communicator& world) {
      Training t("dcformer", world, before);
      t.steps(0, kBefore);
      t.save(part.path, kBefore);
    });
    for (const Shape3& after : layouts) {
      BOOST_TEST_CONTEXT("saved at " << str(before) << ", resumed at " << str(after)) {
        TempFolder again, end;
        on_ranks(after, [&](const dist::Communicator& world) {
          Training t("dcformer", world, after);
          models::load_checkpoint(folder(part, kBefore), t.trainer);
          t.save(again.path, kBefore);
          t.steps(kBefore, kSteps);
          t.save(end.path, kSteps);
        });
        BOOST_TEST(same_bytes(again, part, kBefore));  // every element is the one that was loaded
        expect_values(values_in(weights(end, kSteps)), averages, 1e-10, "averages");
        expect_values(values_in(state(end, kSteps)), moments, 1e-8, "trained weights and moments");
      }
    }
  }
}

// Frozen when a run continues, a parameter may still have an average that differs from it.
BOOST_AUTO_TEST_CASE(parameters_that_are_frozen_at_a_resume) {
  const std::vector<std::string> groups = {"*.feed_forward.* frozen_until=100"};
  TempFolder start;
  Training first("dcformer", {}, {});
  first.steps(0, kBefore);
  first.save(start.path, kBefore);
  const auto go_on = [&](Training& t) {
    models::load_checkpoint(folder(start, kBefore), t.trainer);
    const double at_once = t.averaged_validation(), trained = t.validation();
    t.steps(kBefore, kSteps);
    return std::vector<double>{at_once, trained, t.averaged_validation(), t.validation()};
  };
  Training one("dcformer", {}, {}, kDecay, DType::f64, groups);
  const std::vector<double> expected = go_on(one);
  expect_close({expected[0]}, {first.averaged_validation()}, 1e-12, "the average of the first part");
  for (const Shape3& s : kLayouts) {
    BOOST_TEST_CONTEXT(str(s)) {
      on_ranks(s, [&](const dist::Communicator& world) {
        Training t("dcformer", world, s, kDecay, DType::f64, groups);
        const std::vector<double> found = go_on(t);
        for (size_t i = 0; i < found.size(); ++i)
          expect_close({found[i]}, {expected[i]}, 1e-11, "loss " + std::to_string(i));
      });
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
