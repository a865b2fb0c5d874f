// One training step: forward_backward() -> the caller looks at the metrics -> apply() or discard(). Nothing but the
// gradients changes before apply().
//
//   batches --check, count targets--> loss scale --forward, backward of each micro-batch--> f32 gradients of the
//   masters
//           --reduce-scatter over ranks--> gradients of this rank's pieces --norm, clip, optimizer--> pieces
//           --all-gather--> parameters --cast--> the copies that the model computes with
//
// On one process collectives are identities; without mixed precision (nn/optim/master_weights.h) the model's parameters
// are the masters. The metrics are the same on all ranks, so all decide alike.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/distributed/parallel/data_parallel.h"
#include "braid/models/folders/stored_parameter.h"
#include "braid/models/training/captured_step.h"
#include "braid/models/training/local_state.h"
#include "braid/models/training/objective.h"
#include "braid/models/training/weight_average.h"
#include "braid/nn/optim/master_weights.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

struct StepMetrics {
  // Mean over the counted targets of all micro-batches of all ranks, without the z-loss; in nats for text. NaN if a
  // weight of any rank is NaN or Inf, even one that this step did not use.
  double loss = NAN;
  double grad_norm = NAN;  // of the trained parameters together, before clipping; NaN where the loss is NaN or infinite
  int64_t tokens = 0;      // counted targets, or what else the objective counts
  // The mean loss of each source (separate_sources()); NaN where the step has no counted target of it.
  std::vector<double> source_losses = {};
  std::vector<double> sample_losses = {};  // sums over targets of this rank's samples; with kSources, kReferenceLosses
};

// The options for parameters of this model: before options.groups stand those of what an optimizer of whole matrices
// updates by elements, Model::elementwise_parameters() and LoRA; behind them the rates of muP (mup.h).
nn::OptimizerOptions options_for(const Model& model, nn::OptimizerOptions options);

class Trainer {
 public:
  // clip: limit of the global gradient norm, 0 = none. compute: type of the model's arithmetic in mixed precision,
  // whose parameters become f32 masters; by default the type of its parameters. They become leaves. The model must
  // outlive the trainer and stay on its device. options.groups may freeze parameters: Error(setting) when one of its
  // patterns matches none.
  Trainer(Model& model, const nn::OptimizerOptions& options, double clip, const dist::ProcessMesh& mesh = {},
          std::optional<DType> compute = {});

  // Capture steps as CUDA graphs and replay them (captured_step.h). Off at first; never on the CPU or several ranks.
  void capture_steps(bool on) { step_.enable(on && mesh_.world.size() == 1); }
  bool replays_steps() const { return step_.captured(); }
  const std::string& capture_given_up_reason() const { return step_.given_up_reason(); }  // memory ran out; "": no

  void round_stochastically(RandomKey key);  // updates of bf16 weights (nn/optim/stochastic_rounding.h); on the CPU
  void minimise(std::shared_ptr<const Objective> o) { objective_ = std::move(o); }  // at first the model's own loss
  // From now on the batches have kSources below `count`, and the metrics the loss of each source, from the same forward
  // pass. 0: no longer.
  void separate_sources(int64_t count) { sources_ = count; }

  // Keeps a moving average of the weights with this decay (weight_average.h), 0: none. It starts as the weights, or as
  // what load() reads. Checkpoints store it as the model's weights, and the trained ones beside the moments.
  void average_weights(double decay);
  // Runs `work` while the model computes with the average, where there is one. Collective.
  void with_average(const std::function<void()>& work);

  // Gradients of the mean loss over all counted targets of the step, however they are spread over micro-batches and
  // ranks. micro_batches: on the CPU, the samples of this data rank; the same number on every rank, and the same
  // samples on the ranks of one data rank. Under StrictBits (trainer_strict.h) samples are consecutive over
  // micro-batches, then data ranks. Error(input) when no target counts. Waits for the device once.
  StepMetrics forward_backward(const std::vector<Batch>& micro_batches);
  // Why this step must not be applied: NaN or Inf in weights, loss or gradients, or gradients whose squares overflow
  // the optimizer's state. Names the step and the first bad tensor; none when all is well. Collective, between
  // forward_backward() and discard().
  std::optional<std::string> non_finite_reason(const StepMetrics& metrics,
                                               const std::vector<Batch>& micro_batches) const;
  void apply(const nn::Rates& lr);  // one update of the optimizer with the clipped gradients, which are then dropped
  void discard();                   // drops the gradients; weights and optimizer state stay those of the step before
  // forward_backward() and apply(); Error(numerical) instead of an update where there is a non_finite_reason().
  StepMetrics step(const std::vector<Batch>& micro_batches, double lr);

  // The elements that this rank owns, no communication; gradients between forward_backward() and apply().
  LocalState local_state() const;
  std::vector<LocalTensor> local_gradients() const;
  // Reads this rank's elements of a state alone. Error(input) names all missing, surplus and mis-shaped tensors at
  // once.
  void load(const io::SafetensorsFile& weights, const io::SafetensorsFile& optimizer,
            const io::SafetensorsFile* adapter = nullptr);

  Model& model() const { return model_; }
  const std::vector<nn::NamedTensor>& parameters() const { return parameters_; }  // this rank's shards; the masters
  std::vector<std::string> state_names(const nn::NamedTensor& parameter) const;   // of its moments; frozen: none
  // Suffix of a parameter's name: its trained weights, in a checkpoint whose model has averaged ones.
  static constexpr const char* kUnaveraged = ".unaveraged";
  const nn::Optimizer& optimizer() const { return *optimizer_; }  // of this rank's pieces
  const dist::ProcessMesh& mesh() const { return mesh_; }

 private:
  void compute_gradients(const StepBuffers& buffers);
  void compute_strict_gradients(const StepBuffers& buffers, const struct StrictShare& share);
  std::vector<double> source_losses(const std::vector<Batch>& batches, const std::vector<double>& of_samples) const;
  void broadcast_parameters();
  std::shared_ptr<const nn::WholeMatrices> matrices() const;
  double largest_squarable() const;
  Shape unsharded_shape(const nn::NamedTensor& parameter) const;
  std::vector<dist::Span> spans(const nn::NamedTensor& parameter, dist::Range held) const;
  std::vector<nn::NamedTensor> read_weight(const io::SafetensorsFile& file, const nn::NamedTensor& parameter,
                                           const StoredParameter& stored) const;
  bool is_trained(const std::string& parameter) const;  // ever
  LocalTensor owned_part(const nn::NamedTensor& parameter) const;

  Model& model_;
  std::shared_ptr<const Objective> objective_ = std::make_shared<Objective>();
  dist::ProcessMesh mesh_;
  nn::MasterWeights masters_;
  std::vector<nn::NamedTensor> parameters_;   // of masters_
  dist::DataParallel parallel_;               // reduces their gradients into this rank's pieces
  std::unique_ptr<nn::Optimizer> optimizer_;  // of the pieces
  std::optional<WeightAverage> average_;      // of the pieces
  std::vector<Tensor> copies_;                // of the pieces, which the model computes with; empty handles where none
  CapturedStep step_;
  double clip_;
  int64_t sources_ = 0;
  std::optional<double> grad_norm_;  // of the gradients that await apply() or discard()
};

// Mean loss over batches without gradients and z-loss; NaN when no target is counted, or when stop(), polled before
// each batch, is true on any rank. Collective: every data rank has its own samples of the same number of batches.
double evaluate(const Model& model, const std::vector<Batch>& batches, const dist::ProcessMesh& mesh = {},
                const std::function<bool()>& stop = {});

}  // namespace braid::models
