// The device's share of a training step. Between its two parts the host looks at the numbers, so that a step that fails
// changes nothing:
//
//   gradients   ids, targets, 1/tokens -> forward and backward of every micro-batch -> losses, squared gradients
//   update      learning rate, clip factor -> parameters and moments -> the copies that the model computes with
//
// A card can record each part once and then repeat it without the host's work for every kernel (tensor/graph.h). Then
// whatever differs between steps is written into tensors that stay where they are, before the part is repeated:
//
//   step 1 of a shape    runs: libraries and kernels make what they keep at their first use
//   step 2               is recorded, then repeated
//   steps 3, 4, ...      are repeated
//   another shape        drops the recording and begins anew, so that the memory of two never exists at once
//
// The kernels and their order are the same either way, and so are the bits.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "braid/distributed/parallel/data_parallel.h"
#include "braid/models/model.h"
#include "braid/nn/optim/master_weights.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/tensor/graph.h"

namespace braid::models {

// The batch on the model's device, checked before (Model::check_batch), so that SkipIndexCheck holds for it.
Batch on_device(const Model& model, const Batch& batch);

class CapturedStep {
 public:
  // All of them must outlive this object; the optimizer has the pieces of `parallel`.
  CapturedStep(Model& model, nn::MasterWeights& masters, dist::DataParallel& parallel, nn::Optimizer& optimizer);

  // Whether to record steps where the device can; off at first. Several processes may not: their collectives are the
  // host's work. What the model's forward pass decides on the host is then decided once, and it must not read values
  // back. When the memory for a recording is not there, steps just run from then on.
  void record(bool on);
  bool recorded() const { return recording_.has_value(); }

  // Leaves the summed gradient of every piece of the optimizer, each target's loss weighing `share`. Returns the sum of
  // losses of each micro-batch, then the squared gradient of each piece (both without the other ranks').
  std::vector<double> gradients(const std::vector<Batch>& batches, double share);
  // One update with these gradients, after which they are gone.
  void update(double lr, double grad_scale);

 private:
  struct Numbers {               // what differs between steps, on the device
    std::vector<Batch> batches;  // micro-batches
    Tensor share;                // f64, ()
    Tensor measured;             // f64 (micro-batches + pieces): what gradients() returns
  };
  struct Recording {
    Numbers numbers;
    std::unique_ptr<Graph> gradients, update;  // update: null until it is first needed
    std::vector<Tensor> left;                  // the gradients that a repetition leaves, piece by piece
  };
  using Form = std::vector<std::pair<Shape, DType>>;  // of the tensors of all batches

  static Form form_of(const std::vector<Batch>& batches);
  Numbers numbers_for(const std::vector<Batch>& batches, double share) const;
  void compute(const Numbers& numbers);
  void spread();  // new parameters, to other ranks and to the copies
  bool may_record() const;
  std::unique_ptr<Graph> recording_of(const std::function<void()>& work);
  void make_recording(const std::vector<Batch>& batches, double share);

  Model& model_;
  nn::MasterWeights& masters_;
  dist::DataParallel& parallel_;
  nn::Optimizer& optimizer_;
  bool record_ = false;
  Form form_, last_;  // of the step under way, and of the last one that was completed
  std::optional<Recording> recording_;
};

}  // namespace braid::models
