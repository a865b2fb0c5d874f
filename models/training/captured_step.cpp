#include "braid/models/training/captured_step.h"

#include "braid/autograd/debug.h"
#include "braid/autograd/record.h"
#include "braid/models/image_model.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::models {

namespace {
StepSums read(const StepBuffers& buffers) {
  const std::vector<double> all = buffers.metrics.to_vector<double>();
  const auto norms = all.begin() + buffers.losses.numel(), weights = norms + buffers.squared_norms.numel(),
             samples = weights + buffers.squared_weights.numel();
  return {{all.begin(), norms}, {norms, weights}, {weights, samples}, {samples, all.end()}};
}
}  // namespace

CapturedStep::CapturedStep(Device device, std::vector<nn::NamedTensor> parameters)
    : device_(device), parameters_(std::move(parameters)) {}

void CapturedStep::enable(bool on) {
  enabled_ = on;
  if (!on) captured_.reset();
}

void CapturedStep::forget() {
  captured_.reset();
  last_shape_.clear();
}

// The switches of BRAID_DEBUG read every result back; which kernels attention within documents launches depends on
// where the documents of a batch begin.
bool CapturedStep::can_capture(const std::vector<Batch>& batches) const {
  for (const Batch& b : batches)
    if (b.has(kPositions) || b.has(kSourceLengths) || b.has(kSampleKeys)) return false;
  return enabled_ && static_cast<bool>(backend(device_).stream.begin_capture) && !watching();
}

CapturedStep::BatchShape CapturedStep::shape_of(const std::vector<Batch>& batches) {
  BatchShape shape;
  for (const Batch& b : batches) {
    for (const nn::NamedTensor& t : b.tensors()) shape.emplace_back(t.value.shape(), t.value.dtype());
  }
  return shape;
}

StepBuffers CapturedStep::make_buffers(const std::vector<Batch>& batches, double loss_scale) const {
  StepBuffers buffers;
  for (const Batch& b : batches) buffers.batches.push_back(b.to(device_));
  buffers.loss_scale = full({}, loss_scale, DType::f64, device_);
  const auto losses = static_cast<int64_t>(batches.size()), norms = static_cast<int64_t>(parameters_.size());
  int64_t samples = 0;
  for (const Batch& b : batches) samples += b.has(kSources) || b.has(kReferenceLosses) ? b.samples() : 0;
  buffers.metrics = empty({losses + 2 * norms + samples}, DType::f64, device_);
  buffers.losses = buffers.metrics.sliced(0, 0, losses);
  buffers.squared_norms = buffers.metrics.sliced(0, losses, losses + norms);
  buffers.squared_weights = buffers.metrics.sliced(0, losses + norms, losses + 2 * norms);
  buffers.sample_losses = buffers.metrics.sliced(0, losses + 2 * norms, losses + 2 * norms + samples);
  return buffers;
}

StepSums CapturedStep::gradients(const std::vector<Batch>& batches, double loss_scale,
                                 const std::function<void(const StepBuffers&)>& work) {
  shape_ = shape_of(batches);
  if (shape_ != last_shape_ || !can_capture(batches)) {
    captured_.reset();
  } else if (!captured_) {
    capture_gradients(batches, loss_scale, work);
  }
  if (!captured_) {
    const StepBuffers buffers = make_buffers(batches, loss_scale);
    work(buffers);
    return read(buffers);
  }
  StepBuffers& buffers = captured_->buffers;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Batch moved = batches[i].to(device_);
    for (const nn::NamedTensor& t : moved.tensors()) buffers.batches[i].at(t.name).copy_(t.value);
  }
  buffers.loss_scale.fill(loss_scale);
  captured_->gradients->replay();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (captured_->parameter_gradients[i]) set_grad(parameters_[i].value, captured_->parameter_gradients[i]);
  }
  return read(buffers);
}

void CapturedStep::update(const std::function<void()>& work) {
  if (captured_ && !captured_->update) captured_->update = capture(work);
  captured_ && captured_->update ? captured_->update->replay() : work();
  last_shape_ = shape_;
}

// Memory that earlier steps left for reuse is released first: a capture has memory of its own.
std::unique_ptr<Graph> CapturedStep::capture(const std::function<void()>& work) {
  release_cached_memory(device_);
  try {
    return std::make_unique<Graph>(device_, work);
  } catch (const OutOfMemory& e) {
    enabled_ = false;
    given_up_reason_ = e.what();
    return nullptr;
  } catch (const Error& e) {
    fail(e.kind(), str(e.what(), "; a training step that does so cannot be captured (train.graph=false launches it)"));
  }
}

void CapturedStep::capture_gradients(const std::vector<Batch>& batches, double loss_scale,
                                     const std::function<void(const StepBuffers&)>& work) {
  Capture made{.buffers = make_buffers(batches, loss_scale)};
  made.gradients = capture([&] { work(made.buffers); });
  if (made.gradients) {
    for (const nn::NamedTensor& p : parameters_)
      made.parameter_gradients.push_back(requires_grad(p.value) ? grad(p.value) : Tensor());
    captured_ = std::move(made);
  }
  for (const nn::NamedTensor& p : parameters_)
    if (requires_grad(p.value)) zero_grad(p.value);
}

}  // namespace braid::models
