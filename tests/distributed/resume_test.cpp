// Checkpoints hold complete tensors: a run saved at one mesh resumes at any other.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <mutex>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/distributed/job/background_work.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/distributed/parity.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(resume)

namespace {

constexpr int64_t kSamples = 8, kLength = 21, kBefore = 2, kAfter = 2;
const std::vector<Shape3> kLayouts = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {4, 1, 1},
                                      {1, 4, 1}, {1, 1, 4}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}};

struct Training {
  models::DcformerConfig config;
  dist::ProcessMesh mesh;
  std::unique_ptr<models::LanguageModel> model;
  models::Trainer trainer;
  models::text::ByteTokenizer tokenizer;
  explicit Training(const dist::Communicator& world, const Shape3& s, const models::DcformerConfig& configured,
                    std::vector<nn::ParameterGroup> groups = {})
      : config(configured),
        mesh(dist::make_mesh(world, s.data, s.context, s.tensor)),
        model(make_model(config, mesh)),
        trainer(*model,
                {.weight_decay = 0.1, .decay = nn::OptimizerOptions::Decay::matrices, .groups = std::move(groups)}, 1.0,
                mesh) {}
  explicit Training(const dist::Communicator& world, const Shape3& s, const std::string& kind = "dcformer",
                    std::vector<nn::ParameterGroup> groups = {})
      : Training(world, s, parity_config(kind), std::move(groups)) {}
  double step(int64_t number) {
    return trainer.step(share_of(step_batch(config, number, kSamples, kLength), mesh), 1e-2).loss;
  }
};

}  // namespace

namespace {
void resume_all_pairs(const std::string& kind, const std::vector<Shape3>& layouts) {
  const Record& want = reference(kind, kBefore + kAfter, kSamples, kLength);
  for (const Shape3& before : layouts) {
    TempFolder run;
    on_ranks(before, [&](const dist::Communicator& world) {
      Training t(world, before, kind);
      for (int64_t i = 0; i < kBefore; ++i) t.step(i);
      models::CheckpointWriter(run.path, 2).save(t.trainer, &t.tokenizer, {kBefore, 0, 0, 1, kLength, "data"}, "");
    });
    std::filesystem::path folder = run.path / models::step_name(kBefore);
    BOOST_REQUIRE(!models::find_damage(folder));
    std::map<std::string, TempFolder> copies;
    for (const Shape3& after : layouts) {
      copies.try_emplace(str(after));
      BOOST_TEST_CONTEXT("saved at " << str(before) << ", resumed at " << str(after)) {
        on_ranks(after, [&](const dist::Communicator& world) {
          Training t(world, after, kind);
          models::load_checkpoint(folder, t.trainer);
          // Saved again by these ranks, the files have the same bytes: every element is the one that was loaded.
          TempFolder& again = copies.at(str(after));
          models::CheckpointWriter(again.path, 2)
              .save(t.trainer, &t.tokenizer, {kBefore, 0, 0, 1, kLength, "data"}, "");
          world.barrier();
          if (world.rank() == 0) {
            for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors", "trainer/manifest.json"}) {
              std::string name = models::step_name(kBefore) + "/" + file;
              expect(again.read(name) == run.read(name), std::string("the bytes of ") + file);
            }
          }
          for (int64_t i = kBefore; i < kBefore + kAfter; ++i)
            expect_close({t.step(i)}, {want.losses[static_cast<size_t>(i)]}, 1e-10,
                         "loss of step " + std::to_string(i));
        });
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_pairs_of_layouts) { resume_all_pairs("dcformer", kLayouts); }

// Rows of wqkv in blocks of two sizes, and one table under two uses.
BOOST_AUTO_TEST_CASE(grouped_heads_and_a_tied_table) {
  resume_all_pairs("llama", {{1, 1, 1}, {1, 1, 4}, {1, 2, 2}, {2, 1, 2}});
}

// A parameter of these families is stored in several tensors, or with its rows in another order; the ranks write and
// read the elements that they own all the same.
BOOST_AUTO_TEST_CASE(checkpoints_with_the_tensors_of_transformers) {
  for (const char* family : {"llama", "gpt_neox"}) {
    models::DcformerConfig config = models::configure("", {{"model_type", family},
                                                           {"vocab_size", "61"},
                                                           {"dim", "24"},
                                                           {"n_layer", "1"},
                                                           {"n_head", "4"},
                                                           {"block_size", "32"},
                                                           {"intermediate_size", "35"},
                                                           {"rotary_pct", "1"}});
    if (family == std::string("llama")) config = models::configure(config, {{"n_kv_head", "2"}});
    TempFolder one;
    on_ranks({1, 1, 1}, [&](const dist::Communicator& world) {
      Training t(world, {1, 1, 1}, config);
      t.step(0);
      models::CheckpointWriter(one.path, 2).save(t.trainer, &t.tokenizer, {1, 0, 0, 1, kLength, "data"}, "");
    });
    const std::string weights = models::step_name(1) + "/model.safetensors";
    const io::SafetensorsFile file((one.path / weights).string());
    const bool llama = family == std::string("llama");
    const io::TensorInfo* keys = file.find(llama ? "model.layers.0.self_attn.k_proj.weight"
                                                 : "gpt_neox.layers.0.attention.query_key_value.weight");
    BOOST_REQUIRE(keys != nullptr);
    BOOST_TEST((keys->shape == (llama ? Shape{12, 24} : Shape{72, 24})));
    for (const Shape3& s : {Shape3{2, 1, 1}, Shape3{1, 1, 2}, Shape3{2, 1, 2}, Shape3{1, 1, 4}}) {
      BOOST_TEST_CONTEXT(family << " at " << str(s)) {
        TempFolder again;
        on_ranks(s, [&](const dist::Communicator& world) {
          Training t(world, s, config);
          models::load_checkpoint(one.path / models::step_name(1), t.trainer);
          // Loaded as a folder over the same mesh, every rank has the same shards.
          const models::LoadedModel folder =
              models::load_model(one.path / models::step_name(1), {.mesh = t.mesh, .tokenizer = false});
          const std::vector<nn::NamedTensor> read = nn::parameters(*folder.model), resumed = nn::parameters(*t.model);
          expect(read.size() == resumed.size(), "the number of parameters");
          for (size_t i = 0; i < read.size(); ++i)
            expect_close(read[i].value.to_vector<double>(), resumed[i].value.to_vector<double>(), 0, read[i].name);
          models::CheckpointWriter(again.path, 2).save(t.trainer, &t.tokenizer, {1, 0, 0, 1, kLength, "data"}, "");
        });
        BOOST_TEST((again.read(weights) == one.read(weights)));
      }
    }
  }
}

// A validation may come before the first step after a resume, where frozen_until was reached before the checkpoint.
BOOST_AUTO_TEST_CASE(a_resumed_run_computes_with_one_average_on_all_ranks) {
  TempFolder run;
  on_ranks({2, 1, 1}, [&](const dist::Communicator& world) {
    const std::vector<nn::ParameterGroup> groups = {nn::parse_group("* frozen_until=1"),
                                                    nn::parse_group("output.* trained")};
    Training before(world, {2, 1, 1}, "dcformer", groups), after(world, {2, 1, 1}, "dcformer", groups);
    before.trainer.average_weights(0.9);
    for (int64_t i = 0; i < 3; ++i) before.step(i);
    models::CheckpointWriter(run.path, 2).save(before.trainer, &before.tokenizer, {3, 0, 0, 1, kLength, "data"}, "");
    after.trainer.average_weights(0.9);
    models::load_checkpoint(run.path / models::step_name(3), after.trainer);
    const auto expect_one = [&](const std::string& when) {
      for (const nn::NamedTensor& p : after.trainer.parameters()) {
        const Tensor mine = p.value.detach().clone();
        expect_equal(mine, world.broadcast(mine, 0), p.name + " " + when);
      }
    };
    after.trainer.with_average([&] { expect_one("while the average is in use"); });
    expect_one("afterwards");
  });
}

// Written beside the training, which goes on with steps on the same ranks, a checkpoint has the bytes of one that the
// training waits for, in every file.
BOOST_AUTO_TEST_CASE(checkpoints_written_beside_the_training) {
  for (const Shape3& s : kLayouts) {
    TempFolder waited, beside;
    on_ranks(s, [&](const dist::Communicator& world) {
      Training t(world, s);
      t.trainer.average_weights(0.9);
      models::CheckpointWriter sync(waited.path, 2), async(beside.path, 2);
      dist::BackgroundWork work;
      std::vector<Tensor> copies;
      for (int64_t step = 1; step <= 4; ++step) {
        t.step(step);
        const models::RunState state{step, 0, 0, 1, kLength, "data"};
        if (work.active()) work.finish();
        sync.save(t.trainer, &t.tokenizer, state, "a = 1\n");
        auto snapshot = std::make_shared<models::Snapshot>(t.trainer, state);
        snapshot->copy_tensors(copies);
        work.start(world, [&async, &t, snapshot, step](const dist::Communicator& own) {
          async.save(*snapshot, own, &t.tokenizer, "a = 1\n");
          if (step == 2) async.mark_best(step, own);
        });
        if (step == 2) sync.mark_best(step, world);
        if (step < 4) work.proceed();
      }
      for (int64_t step = 5; !work.proceed(); ++step) t.step(step);
    });
    BOOST_TEST_CONTEXT(str(s)) {
      BOOST_TEST(models::step_folders(beside.path).size() == 3u);  // the best and the two newest
      std::vector<std::filesystem::path> files = io::files_below(waited.path);
      BOOST_TEST(files.size() == io::files_below(beside.path).size());
      for (const std::filesystem::path& file : files) {
        const std::string name = file.lexically_relative(waited.path).string();
        BOOST_TEST((beside.read(name) == waited.read(name)), name);
      }
      BOOST_TEST(!models::find_damage(beside.path / models::step_name(4)));
    }
  }
}

// An error of any rank's disk is one of all, and the training's steps stay together.
BOOST_AUTO_TEST_CASE(an_error_beside_the_training_is_everybodys) {
  TempFolder run;
  run.write("file", "not a folder");
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    t.step(0);
    models::CheckpointWriter writer(run.path / "file", 2);
    models::Snapshot snapshot(t.trainer, {1, 0, 0, 1, kLength, "data"});
    std::vector<Tensor> copies;
    snapshot.copy_tensors(copies);
    dist::BackgroundWork work;
    work.start(world, [&](const dist::Communicator& own) { writer.save(snapshot, own, &t.tokenizer, ""); });
    t.step(1);
    expect_error([&] { work.finish(); }, ErrorKind::output, "older checkpoints are intact");
    t.step(2);
  });
}

BOOST_AUTO_TEST_CASE(a_full_disk_of_rank_0_is_everybodys_error) {
  TempFolder run;
  run.write("file", "not a folder");
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    t.step(0);
    expect_error(
        [&] {
          models::CheckpointWriter(run.path / "file", 2)
              .save(t.trainer, &t.tokenizer, {1, 0, 0, 1, kLength, "data"}, "");
        },
        ErrorKind::output, "older checkpoints are intact");
    t.step(1);  // all ranks are still together
  });
}

BOOST_AUTO_TEST_CASE(nan_on_another_rank_leaves_no_folder) {
  TempFolder parent;
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    for (nn::NamedTensor& p : nn::parameters(*t.model)) {
      if (p.name == "layers.1.feed_forward.w2.weight" && world.rank() == 1) p.value.detach().fill(NAN);
    }
    expect_error(
        [&] {
          models::CheckpointWriter(parent.path / "run", 2)
              .save(t.trainer, &t.tokenizer, {1, 0, 0, 1, kLength, "data"}, "");
        },
        ErrorKind::numerical, "contains NaN or Inf after step 1; no checkpoint was written");
    expect(!std::filesystem::exists(parent.path / "run"), "a folder was left behind");
  });
}

// The checkpoint of the weights that failed becomes the folder of the failed step; all ranks continue together.
BOOST_AUTO_TEST_CASE(a_failed_step_is_no_checkpoint_of_any_rank) {
  TempFolder run;
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    models::CheckpointWriter writer(run.path, 2);
    for (int64_t step = 1; step <= 2; ++step) {
      t.step(step - 1);
      writer.save(t.trainer, &t.tokenizer, {step, 0, 0, 1, kLength, "data"}, "");
    }
    for (int64_t saved : {2, 3}) {  // step 2 was saved, step 3 was not
      const auto folder = writer.save_failed(t.trainer, &t.tokenizer, {saved, 0, 0, 1, kLength, "data"}, "", saved + 1);
      expect(!models::find_damage(folder, world), "a damaged folder of a failed step");
      std::vector<std::string> notes;
      expect(models::newest_checkpoint(run.path, notes, world).step == 1 && notes.empty(), "the newest is not step 1");
      t.step(saved);
    }
    writer.mark_best(1, world);
    for (int64_t step = 2; step <= 5; ++step)
      writer.save(t.trainer, &t.tokenizer, {step, 0, 0, 1, kLength, "data"}, "");
    expect(models::step_folders(run.path, world).front().step == 1, "the best one was removed");
  });
}

// A signal reaches one rank; all of them leave the validation at the same batch.
BOOST_AUTO_TEST_CASE(all_ranks_stop_a_validation_together) {
  for (const Shape3& s : {Shape3{2, 1, 1}, Shape3{1, 2, 1}, Shape3{1, 1, 2}}) {
    on_ranks(s, [&](const dist::Communicator& world) {
      Training t(world, s);
      const std::vector<models::Batch> batches(
          4, share_of(step_batch(parity_config("dcformer"), 0, kSamples, kLength), t.mesh).at(0));
      int polls = 0;
      const double loss =
          models::evaluate(*t.model, batches, t.mesh, [&] { return ++polls == 3 && world.rank() == 1; });
      expect(std::isnan(loss) && polls == 3, "not stopped before the third batch");
      t.step(0);  // all ranks are still together
    });
  }
}

BOOST_AUTO_TEST_CASE(states_that_do_not_fit_are_rejected_on_every_rank) {
  TempFolder folder;
  on_ranks({1, 1, 2}, [&](const dist::Communicator& world) {
    Training t(world, {1, 1, 2});
    models::CheckpointWriter(folder.path, 2).save(t.trainer, &t.tokenizer, {1, 0, 0, 1, kLength, "data"}, "");
    const std::filesystem::path saved = folder.path / models::step_name(1);
    const std::string optimizer = saved / "trainer/optimizer.safetensors";
    std::string wrong = folder / "wrong", part = folder / "part";
    if (world.rank() == 0) {
      const io::SafetensorsFile file(saved / "model.safetensors");
      io::NamedTensors weights;
      for (const io::TensorInfo& info : file.tensors()) weights.emplace_back(info.name, file.load(info.name));
      const auto named = [&](const std::string& name) -> Tensor& {
        return std::find_if(weights.begin(), weights.end(), [&](const auto& w) { return w.name == name; })->value;
      };
      // NaN in the last word's row, which is on rank 1: rank 0 does not even read it.
      Tensor& last = named("output.weight");
      last.sliced(0, last.dim(0) - 1, last.dim(0)).fill(NAN);
      io::save_safetensors(part, weights);
      named("tok_embeddings.weight") = zeros({3, 3}, DType::f64);
      io::save_safetensors(wrong, weights);
    }
    world.barrier();
    io::SafetensorsFile state(optimizer), misfit(wrong), damaged(part);
    expect_error([&] { t.trainer.load(misfit, state); }, ErrorKind::input, "tok_embeddings.weight has shape (3, 3)");
    expect_error([&] { t.trainer.load(state, state); }, ErrorKind::input, "tok_embeddings.weight is missing");
    if (world.rank() == 0) {
      t.trainer.load(damaged, state);
    } else {
      expect_error([&] { t.trainer.load(damaged, state); }, ErrorKind::input, "output.weight (30, 24) contains NaN");
    }
  });
}

// Every element has one owner, so parallel writers never overlap.
BOOST_AUTO_TEST_CASE(owned_parts_tile_the_state) {
  for (const Shape3& s : kLayouts) {
    std::mutex mutex;
    std::map<std::string, std::vector<int>> owners;  // per element of the full tensor
    on_ranks(s, [&](const dist::Communicator& world) {
      Training t(world, s);
      models::LocalState state = t.trainer.local_state();
      std::lock_guard lock(mutex);
      for (const auto* list : {&state.weights, &state.optimizer}) {
        for (const models::LocalTensor& tensor : *list) {
          std::vector<int>& count = owners[tensor.name];
          count.resize(static_cast<size_t>(numel(tensor.shape)));
          for (const dist::Span& span : tensor.spans) {
            for (int64_t i = 0; i < span.count; ++i) ++count[static_cast<size_t>(span.full + i)];
          }
        }
      }
    });
    for (const auto& [name, count] : owners)
      BOOST_TEST((count == std::vector<int>(count.size(), 1)), str(s) + ": " + name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
