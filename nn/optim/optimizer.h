// The interface of all optimizers: named parameters, named state, one update at a time.
//
//   step = prepare (host: counts the update, sends its rates to the device) + apply (device: updates the parameters)
//
// A rule is a class with a constructor, state_suffixes() and update(), in a file of rules/. An update may be one fused
// kernel (tensor/kernels/update_rules.h) or be composed of ops. nn/optim/adding_an_optimizer.md has the steps.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/nn/module.h"
#include "braid/nn/optim/groups.h"
#include "braid/nn/optim/stochastic_rounding.h"
#include "braid/nn/optim/whole_matrices.h"

namespace braid {
enum class UpdateRule : unsigned char;  // of tensor/kernels/update_rules.h
}

namespace braid::nn {

// What muon reads (rules/muon.h).
struct MuonOptions {
  enum class Scale { rms, spectral };
  enum class Normalise { none, rows, columns, both };

  double momentum = 0.95;
  bool nesterov = true;
  Scale scale = Scale::rms;
  bool bf16 = false;  // orthogonalise in bf16, else in the type of the update
  int64_t steps = 5;  // Newton-Schulz steps
  Normalise normalise = Normalise::none;
  int64_t heads = 0;  // heads whose queries, or keys, are orthogonalised as one matrix; 0: all of a layer
};

// The settings of all rules; each rule reads those that it documents.
struct OptimizerOptions {
  enum class Decay { all, matrices };  // matrices: tensors of rank >= 2 only, which excludes norms and biases

  std::string name = "adamw";  // of the rule, for make_optimizer(); a class that is constructed directly ignores it
  double lr = 3e-4;            // the rate of a step() without arguments
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  Decay decay = Decay::all;
  double momentum = 0;  // of sgd
  MuonOptions muon = {};
  std::vector<ParameterGroup> groups = {};  // rates, decay and freezing by name
};

// "all" or "matrices"; "rms" or "spectral"; "none", "rows", "columns" or "both". Throw Error(setting) with the choices.
OptimizerOptions::Decay parse_decay(const std::string& text);
MuonOptions::Scale parse_muon_scale(const std::string& text);
MuonOptions::Normalise parse_muon_normalise(const std::string& text);

class Optimizer {
 public:
  enum class MissingGradient { error, skip };

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Makes one update of every parameter: prepare(), then apply(). All parameters are updated or none: gradients of
  // another type, shape or device are an error that names them, before anything has changed. A parameter without a
  // gradient is such an error too, or is skipped: the update counts for its bias corrections all the same. Parameters
  // that are frozen in this update (options.groups) need none and keep their values and states. Error(setting) when lr
  // is not finite in the type of the update.
  void step(const Rates& lr, double grad_scale = 1, MissingGradient missing = MissingGradient::error);
  void step() { step(options_.lr); }

  // The two halves of a step. prepare() counts the update and copies the scalars that differ between updates (rates,
  // bias corrections) to the parameters' device, after the work enqueued there. apply() enqueues the update, which
  // reads them there: a Graph (tensor/graph.h) may capture apply(), and prepare() and replay() are then a step, as long
  // as the gradients keep arriving in the tensors that were captured.
  void prepare(const Rates& lr, double grad_scale = 1);
  void apply(MissingGradient missing = MissingGradient::error);
  void zero_grad();

  // One for each of parameters(): a bf16 or f16 tensor of an f32 parameter's shape, to which every update also writes
  // the rounded parameter, or an empty handle. A gradient may then have the type of the copy.
  void set_copies(std::vector<Tensor> copies);

  // For rules that update whole matrices: their parts, and the ranks that share them. By default every parameter is
  // complete here, and no part is known.
  void set_matrices(std::shared_ptr<const WholeMatrices> matrices) { matrices_ = std::move(matrices); }

  // From now on bf16 parameters are updated in f32, a few million elements or one matrix at a time, and rounded at
  // random (stochastic_rounding.h): in update t with the key child(child(key, t), name). spans: for each of
  // parameters(), its place in the complete one; none: all are complete. Gradients of such parameters may be f32.
  // Error(setting) for another device than the CPU.
  void round_stochastically(RandomKey key, std::vector<std::vector<ElementSpan>> spans = {});

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const OptimizerOptions& options() const { return options_; }
  int64_t steps() const { return steps_; }  // updates made so far

  // "steps", i64 (1), then "<parameter><suffix>" for each suffix of the rule, in the shape of the parameter and in
  // accumulate_type of its dtype. The tensors share the optimizer's memory; save them before the next step.
  std::vector<NamedTensor> state() const;
  // Copies such a state. Reports all missing, surplus and mis-shaped names and all tensors with NaN, Inf or a negative
  // second moment together in one Error(input); then nothing has changed. `source` names the origin of the state in
  // messages.
  void load(const std::vector<NamedTensor>& state, const std::string& source);

 protected:
  // A parameter whose gradient has arrived, with its state in the order of the suffixes; all contiguous, of one shape.
  struct Item {
    Tensor parameter, gradient;  // of one type, or the gradient of the copy's
    std::span<const Tensor> state;
    double weight_decay;  // 0 where options.decay excludes the parameter
    Tensor copy;          // or empty; written by fused_update(), or after update()
    std::string_view name;
  };

  // The largest and the smallest normal value that all types in which updates are computed (accumulate_type of the
  // parameters) can represent.
  double largest() const;
  double smallest() const;

  // The handles are shared with the module; they must be leaves (require_grad) with different names, contiguous and on
  // one device. The state starts as zeros. matrix_suffixes: of the state of matrices (is_matrix()), for a rule that has
  // update_matrices(); none: the rule updates all parameters by elements.
  Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options,
            const std::vector<std::string>& state_suffixes,
            const std::optional<std::vector<std::string>>& matrix_suffixes = {});

  // Enqueues the update of all items in place, without reading values back. `scalars`, f64 (4) on the parameters'
  // device: lr, grad_scale (the factor of the gradients), then bias_corrections().
  virtual void update(const std::vector<Item>& items, const Tensor& scalars) = 0;
  // The same of matrices, which are complete or a rank's shard of one that matrices() completes. Every rank that has a
  // shard of a matrix has the same such items in the same order.
  virtual void update_matrices(const std::vector<Item>& items, const Tensor& scalars) { (void)items, (void)scalars; }
  const WholeMatrices& matrices() const { return *matrices_; }
  // The device's kernel for `rule`, for update(). `constants`: those that the formula takes.
  void fused_update(UpdateRule rule, const std::array<double, 4>& constants, const std::vector<Item>& items,
                    const Tensor& scalars);
  // The two scalars of update number t = 1, 2, ... that depend on t alone; t counts from the first update in which the
  // parameter's group is not frozen, those in which the parameter was skipped included.
  virtual std::array<double, 2> bias_corrections(int64_t t) const;

 private:
  // Parameters that are updated together: one learning rate, one first update.
  struct Group {
    double lr;  // factor
    std::optional<Schedule::Tail> tail;
    int64_t frozen_until;
    std::vector<size_t> members;  // of parameters_
  };
  struct Rounding {
    RandomKey key;
    std::vector<std::vector<ElementSpan>> spans;  // of each parameter
  };
  void check_gradients(MissingGradient missing, int64_t update) const;
  void update_and_round(const std::vector<size_t>& members, const Tensor& scalars);
  void check_rate(double lr) const;
  const std::vector<std::string>& suffixes_of(size_t i) const { return by_matrix_[i] ? of_matrices_ : suffixes_; }

  std::vector<NamedTensor> parameters_;
  std::vector<Tensor> copies_;   // of each parameter, or an empty handle
  bool copies_written_ = false;  // by the update under way
  OptimizerOptions options_;
  std::shared_ptr<const WholeMatrices> matrices_ = std::make_shared<WholeMatrices>();
  std::vector<bool> by_matrix_;                      // of each parameter: update_matrices() updates it
  std::vector<std::string> suffixes_, of_matrices_;  // of the states of parameters
  std::vector<std::vector<Tensor>> states_;          // of each parameter, one tensor per suffix
  std::vector<double> decay_;                        // of each parameter
  std::vector<Group> groups_;                        // in an order that every rank has
  Tensor scalars_;                                   // (groups, 4): of the update that was prepared last
  int64_t steps_ = 0;
  std::optional<Rounding> rounding_;
};

// Whether the state tensor of this name is a mean of squares, which is never negative and overflows where a gradient's
// square does. In all rules the names of these end in ".second".
bool is_second_moment(const std::string& name);

// For constructors of rules: throws Error(setting) "optimizer setting beta1 must be <range>, found <value>".
void check_setting(bool ok, const char* name, double value, const char* range);

}  // namespace braid::nn
