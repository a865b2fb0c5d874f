// StrictBits: the weights after some steps have the same bits for every number of data ranks, micro-batches and threads
// and on every instruction set; gradients are one tree over the samples of a step.
#include "braid/tensor/strict.h"

#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/nn/init.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/cpu/instruction_sets.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/parallel.h"
#include "tests/distributed/parity.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(strict)

namespace {

constexpr int64_t kSteps = 4, kSamples = 7, kLength = 37;

struct Run {
  std::string kind = "dcformer";
  int ranks = 1;
  int64_t of_micro_batch = kSamples;  // samples of a rank that the trainer gets at once
  int threads = 1;
  DType compute = DType::f32;
  std::string rule = "adamw";
  bool documents = false;
};

// Everything that the steps leave, as bits: losses and norms, weights.
struct Bits {
  std::vector<double> metrics;
  uint32_t weights = 0;
  friend bool operator==(const Bits&, const Bits&) = default;
};
std::ostream& operator<<(std::ostream& to, const Bits& b) {
  to << std::hex << b.weights << std::dec;
  for (const double m : b.metrics) to << " " << std::hexfloat << m;
  return to;
}

uint32_t checksum(const models::Trainer& trainer) {
  uint32_t sum = 0;
  for (const nn::NamedTensor& p : trainer.parameters()) {
    const Tensor values = p.value.detach().contiguous();
    sum = io::crc32c(values.raw(), values.numel() * size_of(values.dtype()), sum);
  }
  return sum;
}

Bits trained(const Run& run) {
  Bits bits;
  const int threads_before = threads();
  set_threads(run.threads);
  dist::run_thread_ranks(run.ranks, [&](const dist::Communicator& world) {
    const StrictBits scope;
    const models::DcformerConfig config = parity_config(run.kind);
    const dist::ProcessMesh mesh = dist::make_mesh(world, run.ranks, 1, 1);
    const auto model = make_model(config, mesh, DType::f32);
    models::Trainer trainer(*model, parity_optimizer(run.rule), 0.5, mesh, run.compute);
    for (int64_t step = 0; step < kSteps; ++step) {
      models::Batch all = step_batch(config, step, kSamples, kLength);
      if (run.documents) all = with_documents(all);
      const dist::Range own = dist::even_partition(kSamples, run.ranks).single(world.rank());
      std::vector<models::Batch> batches;
      for (int64_t i = own.begin; i < own.end; i += run.of_micro_batch)
        batches.push_back(all.slice(i, std::min(own.end, i + run.of_micro_batch)));
      const models::StepMetrics metrics = trainer.step(batches, 1e-2);
      if (world.rank() == 0) bits.metrics.insert(bits.metrics.end(), {metrics.loss, metrics.grad_norm});
    }
    if (world.rank() == 0) bits.weights = checksum(trainer);
  });
  set_threads(threads_before);
  return bits;
}

// On every instruction set of this processor: its name, then the bits.
template <class Body>
void on_every_set(Body&& body) {
  for (const cpu::InstructionSet* set : cpu::instruction_sets()) {
    cpu::use_instruction_set(set->name);
    cpu::attention::use_variant(set->name);
    BOOST_TEST_CONTEXT(set->name) { body(); }
  }
  cpu::use_instruction_set("");
  cpu::attention::use_variant("");
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_bit_depends_on_the_layout) {
  const Bits want = trained({});
  BOOST_TEST(std::isfinite(want.metrics.back()));
  for (const int ranks : {2, 3, 4, 7}) BOOST_TEST(trained({.ranks = ranks}) == want, ranks << " ranks");
  for (const int64_t samples : {1, 2, 3}) BOOST_TEST(trained({.of_micro_batch = samples}) == want);
  for (const int threads : {2, 3}) BOOST_TEST(trained({.ranks = 2, .of_micro_batch = 2, .threads = threads}) == want);
}

BOOST_AUTO_TEST_CASE(no_bit_of_any_model_depends_on_it) {
  for (const std::string& kind : parity_kinds()) {
    BOOST_TEST_CONTEXT(kind) {
      const Bits want = trained({.kind = kind});
      cpu::use_instruction_set("portable");
      cpu::attention::use_variant("portable");
      BOOST_TEST(trained({.kind = kind, .ranks = 3, .of_micro_batch = 2, .threads = 2}) == want);
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
      run.ranks = 3, run.of_micro_batch = 1, run.threads = 2;
      on_every_set([&] { BOOST_TEST(trained(run) == want); });
    }
}

BOOST_AUTO_TEST_CASE(no_bit_depends_on_who_updates_a_matrix) {
  const Bits want = trained({.rule = "muon"});
  on_every_set([&] { BOOST_TEST(trained({.ranks = 2, .rule = "muon"}) == want); });
  BOOST_TEST(trained({.ranks = 5, .rule = "muon"}) == want);
}

BOOST_AUTO_TEST_CASE(without_the_scope_layouts_differ) {
  Bits one, two;
  for (const int ranks : {1, 2}) {
    dist::run_thread_ranks(ranks, [&](const dist::Communicator& world) {
      const Record record =
          train(parity_config("dcformer"), dist::make_mesh(world, ranks, 1, 1), 2, 8, kLength, DType::f32);
      if (world.rank() == 0) (ranks == 1 ? one : two).metrics = record.norms;
    });
  }
  BOOST_TEST(!(one == two));
}

BOOST_AUTO_TEST_CASE(ranks_of_other_kinds_are_rejected) {
  for (const Shape3& s : {Shape3{1, 2, 1}, Shape3{1, 1, 2}}) {
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      const StrictBits scope;
      const dist::ProcessMesh mesh = dist::make_mesh(world, s.data, s.context, s.tensor);
      const auto model = make_model(parity_config("dcformer"), mesh, DType::f32);
      expect_error([&] { models::Trainer(*model, parity_optimizer(), 0.5, mesh); }, ErrorKind::setting,
                   "expected parallel.context = 1 and parallel.tensor = 1");
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
