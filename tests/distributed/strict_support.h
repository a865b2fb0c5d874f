// Training under StrictBits over thread ranks, and all that it leaves, as bits.
#pragma once
#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/whole_parameters.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/cpu/instruction_sets.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"
#include "tests/distributed/parity.h"

namespace braid::test {

// Losses and norms, weights, moments.
struct Bits {
  std::vector<double> metrics;
  uint32_t weights = 0;
  std::map<std::string, std::vector<double>> moments;
  friend bool operator==(const Bits&, const Bits&) = default;
};
inline std::ostream& operator<<(std::ostream& to, const Bits& b) {
  to << std::hex << b.weights << std::dec;
  for (const double m : b.metrics) to << " " << std::hexfloat << m;
  return to;
}

// Collective over the tensor ranks.
inline uint32_t checksum(const models::Trainer& trainer) {
  uint32_t sum = 0;
  for (const Tensor& whole : models::whole_parameters(trainer.model(), trainer.parameters(), trainer.mesh().tensor)) {
    const Tensor values = whole.contiguous();
    sum = io::crc32c(values.raw(), values.numel() * size_of(values.dtype()), sum);
  }
  return sum;
}

struct StrictTask {
  std::function<std::unique_ptr<models::Model>(const dist::ProcessMesh&)> make;
  std::function<models::Batch(int64_t step)> batch;  // all samples of a step
  std::shared_ptr<const models::Objective> objective = std::make_shared<models::Objective>();
  bool stochastic = false;  // updates of weights that `make` holds in bf16
};
struct StrictLayout {
  Shape3 mesh = {};
  int64_t of_micro_batch = 1000;  // samples of a rank that the trainer gets at once
  int threads = 1;
  DType compute = DType::f32;
  std::string rule = "adamw";
  int64_t steps = 4;
  bool strict = true;
};

// Calls body(world, mesh) on every rank of the mesh.
inline void on_strict_ranks(const StrictLayout& layout,
                            const std::function<void(const dist::Communicator&, const dist::ProcessMesh&)>& body) {
  const int threads_before = threads();
  set_threads(layout.threads);
  const Shape3& s = layout.mesh;
  on_ranks(s, [&](const dist::Communicator& world) {
    const StrictBits scope(layout.strict);
    body(world, dist::make_mesh(world, s.data, s.context, s.tensor));
  });
  set_threads(threads_before);
}

inline Bits trained(const StrictTask& task, const StrictLayout& layout) {
  Bits bits;
  on_strict_ranks(layout, [&](const dist::Communicator& world, const dist::ProcessMesh& mesh) {
    const auto model = task.make(mesh);
    models::Trainer trainer(*model, parity_optimizer(layout.rule), 0.5, mesh, layout.compute);
    trainer.minimise(task.objective);
    if (task.stochastic) trainer.round_stochastically({5, 0});
    const int64_t rows = task.objective->sample_rows();
    for (int64_t step = 0; step < layout.steps; ++step) {
      const models::Batch all = task.batch(step);
      const dist::Partition samples = dist::even_partition(all.samples() / rows, mesh.data.size());
      const dist::Range own = samples.single(mesh.data.rank());
      std::vector<models::Batch> batches;
      for (int64_t i = own.begin; i < own.end; i += layout.of_micro_batch)
        batches.push_back(all.slice(rows * i, rows * std::min(own.end, i + layout.of_micro_batch)));
      const models::StepMetrics metrics = trainer.step(batches, 1e-2);
      if (world.rank() == 0) bits.metrics.insert(bits.metrics.end(), {metrics.loss, metrics.grad_norm});
    }
    const uint32_t weights = checksum(trainer);
    auto state = unsharded(trainer.local_state().optimizer, world);
    if (world.rank() == 0) bits.weights = weights, bits.moments = std::move(state);
  });
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

}  // namespace braid::test
