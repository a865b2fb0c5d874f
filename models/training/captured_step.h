// A training step as work for the device: launched kernel by kernel, or captured as a CUDA graph and replayed
// (tensor/graph.h), which saves the host's work for every kernel.
//
// The step has two parts. Between them the host reads the metrics and decides, so a step that fails changes nothing:
//
//   gradients   batches, loss scale -> forward and backward of every micro-batch -> losses, squared gradient norms
//   update      learning rate, clip factor -> parameters and moments -> the copies that the model computes with
//
// Inputs that differ between steps are copied into StepBuffers, tensors at fixed addresses, before a replay:
//
//   step 1 of a shape    is launched: libraries and kernels allocate what they keep at their first use
//   step 2               is captured, then replayed
//   steps 3, 4, ...      are replayed
//   another shape        drops the capture and starts over, so the memory of two captures never exists at once
//
// A step of batches with positions (models/batch.h) is always launched: its kernels differ from batch to batch.
// Kernels and their order are the same either way, and so are the bits.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/batch.h"
#include "braid/nn/module.h"
#include "braid/tensor/graph.h"

namespace braid::models {

// Inputs and results of the gradient part, on the device.
struct StepBuffers {
  std::vector<Batch> batches;  // the micro-batches
  Tensor loss_scale;           // f64, (): the factor of the loss in backward, 1 / number of targets
  Tensor losses;               // f64 (micro-batches): the loss of each, summed over its targets
  Tensor squared_norms;        // f64 (parameters): of the gradient of each
  Tensor squared_weights;      // f64 (parameters): sum of the squared elements of each, before the update
  Tensor sample_losses;        // f64 (micro-batches * B): the same of each sample; (0) unless batches have kSources or
                               // kReferenceLosses
  Tensor metrics;              // the four above in one tensor, so that they are read back at once
};

// The results on the host.
struct StepSums {
  std::vector<double> losses, squared_norms, squared_weights, sample_losses;
};

class CapturedStep {
 public:
  // parameters: the leaves whose gradients the gradient part computes.
  CapturedStep(Device device, std::vector<nn::NamedTensor> parameters);

  // Capture where the device can; off at first. Then the work must not read values back, and the host's decisions in it
  // are made once. If there is too little memory for a capture, steps are launched from then on.
  void enable(bool on);
  bool captured() const { return captured_.has_value(); }
  // The error for which capture was given up: memory ran out. "": none.
  const std::string& given_up_reason() const { return given_up_reason_; }
  void forget();  // the work changes: capture it anew

  // The gradient part: `work` computes the gradients and fills the metrics. batches: on the CPU. Waits for
  // the device once.
  StepSums gradients(const std::vector<Batch>& batches, double loss_scale,
                     const std::function<void(const StepBuffers&)>& work);
  // The update part. A step counts as complete with it: the next one of the same shape may be captured.
  void update(const std::function<void()>& work);

 private:
  using BatchShape = std::vector<std::pair<Shape, DType>>;  // of all tensors of all batches
  struct Capture {
    StepBuffers buffers;
    std::unique_ptr<Graph> gradients, update;  // update: null before its first use
    std::vector<Tensor> parameter_gradients;   // where a replay leaves them
  };

  static BatchShape shape_of(const std::vector<Batch>& batches);
  StepBuffers make_buffers(const std::vector<Batch>& batches, double loss_scale) const;
  bool can_capture(const std::vector<Batch>& batches) const;
  std::unique_ptr<Graph> capture(const std::function<void()>& work);
  void capture_gradients(const std::vector<Batch>& batches, double loss_scale,
                         const std::function<void(const StepBuffers&)>& work);

  Device device_;
  std::vector<nn::NamedTensor> parameters_;
  bool enabled_ = false;
  std::string given_up_reason_;
  BatchShape shape_, last_shape_;  // of the step under way, and of the last complete one
  std::optional<Capture> captured_;
};

}  // namespace braid::models
