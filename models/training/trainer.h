// One training step: gradients of several micro-batches, clipping, one optimizer update. Nothing is changed when the
// step fails.
//
// In mixed precision (nn/optim/master_weights.h) everything here but the model's own arithmetic is about the f32
// masters.
//
// The same code trains on one process and on many (distributed/README.md): what is summed over ranks is the identity
// on one. Every decision (NaN, loss spike) is made from numbers that all ranks hold alike, so all make the same.
#pragma once
#include <cmath>
#include <functional>
#include <optional>

#include "braid/distributed/sharding/process_mesh.h"
#include "braid/models/dcformer/model.h"
#include "braid/models/training/captured_step.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

struct StepResult {
  double loss = NAN;       // mean cross-entropy over the valid targets of all micro-batches of all ranks, in nats
  double grad_norm = NAN;  // before clipping
  int64_t tokens = 0;      // valid targets
};

// Weights and optimizer state as whole tensors, as checkpoints hold them, whatever the mesh.
struct WholeState {
  std::vector<nn::NamedTensor> weights;    // in the order of the model
  std::vector<nn::NamedTensor> optimizer;  // "steps", then the moments of each parameter
};

// The elements of a parameter or moment that one rank owns. Every element belongs to exactly one rank of the job.
struct LocalTensor {
  std::string name;
  DType dtype;
  Shape shape;                    // of the unsharded tensor
  std::vector<dist::Span> spans;  // where `values` stand in the flattened unsharded tensor
  Tensor values;                  // contiguous, shares the memory of model and optimizer; empty where none is owned
};
struct LocalState {
  std::vector<LocalTensor> weights, optimizer;  // the same names in the same order on every rank
};

class Trainer {
 public:
  // clip: limit of the global gradient norm, 0 = none. compute: mixed precision, the model's parameters become the
  // masters and the model computes in that type; without it, in the type of its parameters, which become leaves.
  Trainer(LanguageModel& model, const nn::OptimizerOptions& options, double clip, const dist::ProcessMesh& mesh = {},
          std::optional<DType> compute = {});

  // Steps of one shape are recorded on a card and then repeated (models/training/captured_step.h): the same numbers in
  // less time, where kernels are short. Off at first; without effect on the CPU and with several processes.
  void record_steps(bool on) { captured_step_.record(on && mesh_.world.size() == 1); }
  bool repeats_a_recording() const { return captured_step_.recorded(); }

  // micro_batches: the samples of this data rank, as many micro-batches on every rank; ranks of one data rank get the
  // same. The loss is the mean over all valid targets of the step, however they are spread over micro-batches and
  // ranks. `inspect` sees the result before anything is updated and may throw (on all ranks). NaN or Inf in loss or
  // gradient throws Error(numerical) that names the step and the first bad tensor; weights and optimizer state are then
  // untouched. The host waits for the device once, after the last backward pass.
  StepResult step(const std::vector<Batch>& micro_batches, double lr,
                  const std::function<void(const StepResult&)>& inspect = {});

  // Of the last call of step(), also of one that threw: what it did not get to is NaN.
  const StepResult& latest() const { return latest_; }

  // Collective. The whole state, or its weights alone, on rank 0; the other ranks get none.
  enum class StateParts { all, weights };
  WholeState whole_state(StateParts parts = StateParts::all) const;
  // The elements that this rank owns; no communication.
  LocalState local_state() const;
  // Reads this rank's part of a state and nothing else. Missing, surplus and mis-shaped names are reported together in
  // one Error(input).
  void load(const io::SafetensorsFile& weights, const io::SafetensorsFile& optimizer);
  // Collective. The summed gradients as whole tensors on every rank: between step()'s update and its end, that is
  // inside `inspect`. The next step may write to them.
  std::vector<nn::NamedTensor> whole_gradients() const;

  LanguageModel& model() const { return model_; }
  const std::vector<nn::NamedTensor>& parameters() const { return parameters_; }  // this rank's parts; the masters
  const nn::Optimizer& optimizer() const { return optimizer_; }                   // of this rank's pieces
  const dist::ProcessMesh& mesh() const { return mesh_; }

 private:
  Tensor join(const std::string& parameter, const Tensor& piece, DType dtype) const;
  Shape whole_shape(const nn::NamedTensor& parameter) const;
  std::vector<dist::Span> spans(const nn::NamedTensor& parameter, dist::Range held) const;

  LanguageModel& model_;
  dist::ProcessMesh mesh_;
  nn::MasterWeights masters_;
  std::vector<nn::NamedTensor> parameters_;
  dist::DataParallel parallel_;
  nn::Optimizer optimizer_;
  CapturedStep captured_step_;
  double clip_;
  StepResult latest_;
};

// Mean loss over batches without gradients; 0 when no target is valid. In a mesh: collective, every data rank with
// its own samples.
double evaluate(const LanguageModel& model, const std::vector<Batch>& batches, const dist::ProcessMesh& mesh = {});

}  // namespace braid::models
