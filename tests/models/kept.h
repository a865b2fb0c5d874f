// Bytes of activations: those that a step keeps between forward and backward, and an estimate of them.
#pragma once
#include "braid/models/model.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/memory.h"

namespace braid::test {

struct Kept {
  double measured, estimate;
  double ratio() const { return measured / estimate; }
  Kept operator-(const Kept& other) const { return {measured - other.measured, estimate - other.estimate}; }
};

// Bytes that a step of the model on the CPU keeps.
inline Kept kept_by_step(const models::Model& model, const models::Batch& batch, const models::TrainingSetup& setup) {
  const int64_t before = memory_stats(kCpu).current;
  const Tensor loss = model.loss_sum(batch);
  return {static_cast<double>(memory_stats(kCpu).current - before), model.spec()->training_memory(setup).activations};
}

}  // namespace braid::test
