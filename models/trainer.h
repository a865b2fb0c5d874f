// One training step: gradients of several micro-batches, clipping, one optimizer update. Nothing is changed when the
// step fails.
#pragma once
#include <cmath>
#include <functional>

#include "models/dcformer.h"
#include "nn/optim/optimizer.h"

namespace braid::models {

struct Batch {
  Tensor ids, targets;  // (B, T); a negative target is not counted
};

struct StepResult {
  double loss = NAN;       // mean cross-entropy over the valid targets of all micro-batches, in nats
  double grad_norm = NAN;  // before clipping
  int64_t tokens = 0;      // valid targets
};

class Trainer {
 public:
  // clip: limit of the global gradient norm, 0 = none. The model's parameters become leaves.
  Trainer(Dcformer& model, const nn::OptimizerOptions& options, double clip);

  // The loss is the mean over all valid targets of the step, however they are spread over micro-batches. `inspect` sees
  // the result before anything is updated and may throw. NaN or Inf in loss or gradient throws Error(numerical) that
  // names the step and the first bad tensor; weights and optimizer state are then untouched.
  StepResult step(const std::vector<Batch>& micro_batches, double lr,
                  const std::function<void(const StepResult&)>& inspect = {});

  // Of the last call of step(), also of one that threw: what it did not get to is NaN.
  const StepResult& latest() const { return latest_; }

  Dcformer& model() { return model_; }
  nn::Optimizer& optimizer() { return optimizer_; }

 private:
  Dcformer& model_;
  nn::Optimizer optimizer_;
  double clip_;
  StepResult latest_;
};

// Mean loss over batches without gradients; 0 when no target is valid.
double evaluate(const Dcformer& model, const std::vector<Batch>& batches);

}  // namespace braid::models
