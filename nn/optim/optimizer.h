// Optimisers over a list of named parameters. Their state is named tensors, so that checkpoints stay readable.
#pragma once
#include <string>
#include <vector>

#include "braid/nn/module.h"

namespace braid::nn {

struct OptimizerOptions {
  enum class Name { adamw, adam, sgd };
  enum class Decay { all, matrices };  // matrices: tensors of rank >= 2 only, which leaves out norms and biases

  Name name = Name::adamw;
  double lr = 3e-4;  // what step() uses when it is given none
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  Decay decay = Decay::all;
  double momentum = 0;  // sgd
};

// "adamw", "adam", "sgd"; "all", "matrices". Throws Error(setting) with the choices.
OptimizerOptions::Name parse_optimizer(const std::string& text);
OptimizerOptions::Decay parse_decay(const std::string& text);

// The endings of the names of the optimiser's state: {".first", ".second"}, {".momentum"} or {}.
std::vector<std::string> state_endings(const OptimizerOptions& options);

// With g = grad_scale * gradient and t the number of the update from 1:
//   AdamW  m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  p -= lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + wd p)
//   Adam   the same with g += wd p first instead of the decay in the update
//   SGD    g += wd p,  u = momentum u + g,  p -= lr u
// The moments are f32 (f64 for f64 parameters).
class Optimizer {
 public:
  enum class MissingGradient { error, skip };

  // The handles are shared with the module; they must be leaves (require_grad) with different names, contiguous and on
  // one device.
  Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options);

  // One update of every parameter: prepare(), then apply(). Parameters without a gradient are an error that names them
  // (then nothing has changed), or keep their value.
  void step(double lr, double grad_scale = 1, MissingGradient missing = MissingGradient::error);
  void step() { step(options_.lr); }

  // The two halves of a step. prepare() counts the update and brings the numbers that are different each time (rates,
  // bias corrections) to the parameters' device, for which a card finishes what it has first. apply() enqueues the
  // update, which reads them there: so a Graph (tensor/graph.h) may record apply(), and prepare() and replay() are a
  // step as long as the gradients keep arriving in the tensors where they were when it was recorded.
  void prepare(double lr, double grad_scale = 1);
  void apply(MissingGradient missing = MissingGradient::error);
  void zero_grad();

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const OptimizerOptions& options() const { return options_; }
  int64_t steps() const { return steps_; }  // updates made so far

  // "<parameter>.first", "<parameter>.second" (adamw, adam) or "<parameter>.momentum" (sgd with momentum), and "steps",
  // i64 (1). The tensors share the optimiser's memory; save them before the next step.
  std::vector<NamedTensor> state() const;
  // Takes over such a state. All missing, surplus and mis-shaped names are reported together in one Error(input); then
  // nothing has been changed. `what` names the source in messages.
  void load(const std::vector<NamedTensor>& state, const std::string& what);

 private:
  struct Slot {
    Tensor first, second;  // sgd: first is the momentum
    bool decays;
  };

  void check_gradients(MissingGradient missing) const;

  std::vector<NamedTensor> parameters_;
  OptimizerOptions options_;
  std::vector<Slot> slots_;
  Tensor scalars_;  // of the update that was prepared last: tensor/kernels/backend.h, StepScalars
  int64_t steps_ = 0;
};

}  // namespace braid::nn
