// One call of oneDNN's convolution for one group of channels of some images, prepared: its primitives for one set of
// sizes, kept for later calls. f32. Only where BRAID_HAVE_DNNL is defined.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "braid/tensor/kernels/convolution.h"

namespace braid::cpu {

enum class ConvolutionPass : uint8_t { forward, input_gradient, weight_gradient };

// x (images, inputs, H, W), weight (outputs, inputs, kh, kw), y (images, outputs, Ph, Pw), of which the first axis may
// have any stride, in elements; the others are contiguous. shape.groups is not read.
struct DnnlProblem {
  ConvolutionPass pass;
  int64_t images, inputs, outputs;
  int64_t x_stride, weight_stride, y_stride;  // of the first axes
  ConvolutionShape shape;
};

// oneDNN computes in layouts of its own choice. A plan copies operands there and the result back, in buffers of the
// caller, aligned to 64 bytes. Several threads may use one plan at a time; each call needs a DnnlCall.
class DnnlPlan {
 public:
  // The plan of an equal problem of before, or a new one; kMaxPlans are kept. A null pointer where oneDNN has no fast
  // code for the problem.
  static std::shared_ptr<const DnnlPlan> of(const DnnlProblem& p);
  static constexpr size_t kMaxPlans = 256;

  enum Operand : uint8_t { x, weight, y };
  // In oneDNN's layout; 0 where that is the plain one, whose data is then passed to run().
  size_t bytes(Operand operand) const;
  size_t scratch_bytes() const;
  void to_dnnl(Operand operand, const float* plain, float* buffer) const;
  void to_plain(Operand operand, const float* buffer, float* plain) const;
  // Computes the result of the pass from the two others, all in oneDNN's layouts.
  void run(const float* x_data, const float* weight_data, const float* y_data, float* scratch) const;

  struct Parts;
  explicit DnnlPlan(std::unique_ptr<const Parts> parts);
  ~DnnlPlan();

 private:
  std::unique_ptr<const Parts> parts_;
};

}  // namespace braid::cpu
