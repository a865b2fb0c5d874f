// Matrices that are updated as wholes: one owner in the job for each, and the run of one process over every layout.
#include "braid/distributed/parallel/matrix_owners.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <mutex>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "tests/distributed/parity.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(matrix_owners)

namespace {

constexpr int64_t kSamples = 8, kLength = 21;

void on_ranks(const Shape3& s, const std::function<void(const dist::ProcessMesh&)>& body) {
  dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), [&](const dist::Communicator& world) {
    body(dist::make_mesh(world, s.data, s.context, s.tensor));
  });
}

nn::OptimizerOptions muon(int64_t heads = 0) {
  nn::OptimizerOptions options = parity_optimizer("muon");
  options.muon.heads = heads;
  return options;
}

Record trained(const std::string& kind, const dist::ProcessMesh& mesh, const nn::OptimizerOptions& options) {
  return train(parity_config(kind), mesh, 3, kSamples, kLength, DType::f64, false, 1e-2, {}, false, 0, options);
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_is_balanced) {
  BOOST_TEST(dist::balanced_owners({1, 5, 3, 3, 2}, 2) == (std::vector<int>{1, 0, 1, 1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(dist::balanced_owners({2, 2, 2}, 4) == (std::vector<int>{0, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST(dist::balanced_owners({}, 2).empty());
}

// Rows and columns, shards of several ranges, a rank without any.
BOOST_AUTO_TEST_CASE(shards_meet_on_one_rank_and_return) {
  const dist::Partition thirds{{{{0, 2}, {5, 6}}, {{2, 5}}, {}}};
  dist::run_thread_ranks(3, [&](const dist::Communicator& tensor) {
    const std::vector<dist::MatrixOwners::Sharded> sharded = {
        {"a", {0, thirds}, {6, 4}}, {"b", {1, thirds}, {4, 6}}, {"c", {0, thirds}, {6, 4}}};
    const dist::MatrixOwners owners({}, sharded, tensor);
    int owned = 0;
    for (const auto& [name, shard, shape] : sharded) {
      const Tensor full = random_tensor(shape, 3, DType::f64);
      const Tensor own = dist::gather_ranges(full, shard.axis, shard.partition.of(tensor.rank()));
      expect(owners.is_sharded(name), name + " is sharded");
      Tensor whole = owners.gather(name, own);
      if (whole) {
        ++owned;
        expect_equal(whole, full, "the matrix of the owner");
        whole = scale(whole, 2);
      }
      expect_equal(owners.scatter(name, whole, own), scale(own, 2), "what comes back");
    }
    expect(owned == 1, "one owner for each of three matrices");
    const Tensor other = full({2, 2}, 1);
    expect(!owners.is_sharded("d") && owners.gather("d", other).id() == other.id(), "a matrix of one rank");
  });
}

// Every matrix is a piece of one rank among those with the same shard, complete; its work is spread.
BOOST_AUTO_TEST_CASE(matrices_are_never_cut) {
  for (const Shape3& s : {Shape3{2, 1, 1}, Shape3{4, 1, 1}, Shape3{2, 1, 2}, Shape3{1, 2, 2}}) {
    std::mutex mutex;
    std::map<std::string, int> owners;
    std::vector<double> work;
    on_ranks(s, [&](const dist::ProcessMesh& mesh) {
      const models::DcformerConfig config = parity_config("dcformer");
      const auto model = make_model(config, mesh);
      const models::Trainer trainer(*model, muon(), 1.0, mesh);
      std::map<std::string, Shape> shapes;
      for (const nn::NamedTensor& p : trainer.parameters()) shapes[p.name] = p.value.shape();
      const std::lock_guard lock(mutex);
      double own = 0;
      for (const nn::NamedTensor& piece : trainer.optimizer().parameters()) {
        const bool matrix = piece.name.find(".w") != std::string::npos && shapes[piece.name].rank() == 2 &&
                            !piece.name.starts_with("tok") && !piece.name.starts_with("output");
        if (!matrix) continue;
        expect(piece.value.shape() == shapes[piece.name], piece.name + " is complete");
        own += nn::matrix_work(piece.value.shape());
        if (mesh.tensor.rank() == 0) ++owners[piece.name];
      }
      work.push_back(own);
    });
    BOOST_TEST(owners.size() == 10);  // five matrices of two layers
    for (const auto& [name, count] : owners) BOOST_TEST(count == 1, name);
    const double most = *std::ranges::max_element(work);
    for (const double w : work) BOOST_TEST(w > most / 4, str(s));
  }
}

BOOST_AUTO_TEST_CASE(every_layout_trains_as_one_process) {
  for (const char* kind :
       {"dcformer", "llama", "grouped", "diff-v2", "variants", "iha", "mta", "dcformer-static-mgate"}) {
    for (const int64_t heads : {0, 2}) {
      const Record want = trained(kind, {}, muon(heads));
      BOOST_TEST(std::isfinite(want.losses.back()));
      for (const Shape3& s : {Shape3{2, 1, 1}, Shape3{4, 1, 1}, Shape3{1, 2, 1}, Shape3{1, 1, 2}, Shape3{1, 1, 3},
                              Shape3{1, 1, 4}, Shape3{2, 1, 2}, Shape3{1, 2, 2}}) {
        if (heads > 0 && s.tensor == 1) continue;
        BOOST_TEST_CONTEXT(kind << " " << str(s) << " heads " << heads)
        on_ranks(s, [&](const dist::ProcessMesh& mesh) {
          const Record got = trained(kind, mesh, muon(heads));
          expect_parity(got, want, 1e-12, 1e-11, mesh.world.rank() == 0, std::string(kind) + ", " + str(s));
        });
      }
    }
  }
}

// The first parameter of a rate is another one on each rank: of dyn_w_proj each updates some elements. The matrices of
// all rates meet in one order all the same.
BOOST_AUTO_TEST_CASE(rates_of_groups_do_not_change_the_order) {
  nn::OptimizerOptions options = muon();
  for (const char* group : {"*.dyn_w_proj.* lr=2", "*.w2.* lr=2", "*.w1.* lr=0.5"})
    options.groups.push_back(nn::parse_group(group));
  const Record want = trained("dcformer", {}, options);
  for (const Shape3& s : {Shape3{1, 1, 2}, Shape3{2, 1, 2}})
    on_ranks(s, [&](const dist::ProcessMesh& mesh) {
      const Record got = trained("dcformer", mesh, options);
      expect_parity(got, want, 1e-12, 1e-11, mesh.world.rank() == 0, str(s));
    });
}

// Saved at one layout, loaded at another: the same files again, and the same losses after.
BOOST_AUTO_TEST_CASE(runs_resume_at_other_layouts) {
  const std::vector<Shape3> layouts = {{1, 1, 1}, {2, 1, 1}, {1, 1, 2}, {2, 1, 2}, {1, 1, 4}};
  const std::string kind = "llama";
  const Record want = trained(kind, {}, muon(2));
  const models::DcformerConfig config = parity_config(kind);
  const models::text::ByteTokenizer tokenizer;
  const models::RunState state{2, 0, 0, 1, kLength, "data"};
  for (const Shape3& before : layouts) {
    TempFolder run;
    on_ranks(before, [&](const dist::ProcessMesh& mesh) {
      const auto model = make_model(config, mesh);
      models::Trainer trainer(*model, muon(2), 1.0, mesh);
      for (int64_t i = 0; i < 2; ++i) trainer.step(share_of(step_batch(config, i, kSamples, kLength), mesh), 1e-2);
      models::CheckpointWriter(run.path, 2).save(trainer, &tokenizer, state, "");
    });
    for (const Shape3& after : layouts) {
      TempFolder again;
      BOOST_TEST_CONTEXT("saved at " << str(before) << ", resumed at " << str(after))
      on_ranks(after, [&](const dist::ProcessMesh& mesh) {
        const auto model = make_model(config, mesh);
        models::Trainer trainer(*model, muon(2), 1.0, mesh);
        models::load_checkpoint(run.path / models::step_name(2), trainer);
        models::CheckpointWriter(again.path, 2).save(trainer, &tokenizer, state, "");
        mesh.world.barrier();
        for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors"}) {
          const std::string name = models::step_name(2) + "/" + file;
          expect(again.read(name) == run.read(name), std::string("the bytes of ") + file);
        }
        const double loss = trainer.step(share_of(step_batch(config, 2, kSamples, kLength), mesh), 1e-2).loss;
        expect_close({loss}, {want.losses[2]}, 1e-10, "the loss after it");
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(another_choice_of_matrices_does_not_fit_a_checkpoint) {
  TempFolder run;
  const models::DcformerConfig config = parity_config("dcformer");
  const auto model = make_model(config, {});
  models::Trainer trainer(*model, muon(), 1.0);
  const models::text::ByteTokenizer tokenizer;
  models::CheckpointWriter(run.path, 2).save(trainer, &tokenizer, {1, 0, 0, 1, kLength, "data"}, "");
  nn::OptimizerOptions other = muon();
  other.groups.push_back(nn::parse_group("*.w2.* update=elements"));
  models::Trainer changed(*model, other, 1.0);
  BRAID_CHECK_FAILS(models::load_checkpoint(run.path / models::step_name(1), changed), ErrorKind::setting,
                    "expected the same optimizer.name, optimizer.momentum, matrices");
}

BOOST_AUTO_TEST_SUITE_END()
