#include "braid/models/training/captured_step.h"

#include "braid/autograd/debug.h"
#include "braid/autograd/detail/check.h"
#include "braid/nn/optim/clip.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::models {

Batch on_device(const Model& model, const Batch& batch) {
  model.check_batch(batch);
  return batch.to(model.device());
}

CapturedStep::CapturedStep(Model& model, nn::MasterWeights& masters, dist::DataParallel& parallel,
                           nn::Optimizer& optimizer)
    : model_(model), masters_(masters), parallel_(parallel), optimizer_(optimizer) {}

void CapturedStep::record(bool on) {
  record_ = on;
  if (!on) recording_.reset();
}

// The switches of BRAID_DEBUG look at every result.
bool CapturedStep::may_record() const {
  return record_ && static_cast<bool>(backend(model_.device()).stream.begin_capture) && !debug().any();
}

CapturedStep::Form CapturedStep::form_of(const std::vector<Batch>& batches) {
  Form form;
  for (const Batch& b : batches) {
    for (const nn::NamedTensor& t : b.tensors()) form.emplace_back(t.value.shape(), t.value.dtype());
  }
  return form;
}

CapturedStep::Numbers CapturedStep::numbers_for(const std::vector<Batch>& batches, double share) const {
  Numbers numbers;
  for (const Batch& b : batches) numbers.batches.push_back(on_device(model_, b));
  numbers.share = full({}, share, DType::f64, model_.device());
  const size_t count = batches.size() + optimizer_.parameters().size();
  numbers.measured = empty({static_cast<int64_t>(count)}, DType::f64, model_.device());
  return numbers;
}

void CapturedStep::compute(const Numbers& numbers) {
  const SkipIndexCheck checked;  // nothing is read back
  const auto count = static_cast<int64_t>(numbers.batches.size());
  const Tensor& measured = numbers.measured;
  for (int64_t i = 0; i < count; ++i) {
    const Batch& batch = numbers.batches[static_cast<size_t>(i)];
    MemoryScope scope(MemoryUse::activations);
    masters_.attach_cast();
    Tensor loss = model_.loss_sum(batch);  // ()
    measured.sliced(0, i, i + 1).copy_(loss.detach().reshaped({1}));
    if (i + 1 == count) parallel_.start();  // gradients travel while this backward pass runs
    backward(loss, numbers.share.to(loss.dtype()));
  }
  parallel_.finish();
  nn::sum_of_squares(optimizer_.parameters(), measured.sliced(0, count, measured.numel()));
}

std::vector<double> CapturedStep::gradients(const std::vector<Batch>& batches, double share) {
  nn::zero_grad(masters_);
  form_ = form_of(batches);
  const bool again = form_ == last_ && may_record();
  if (!again) {
    recording_.reset();
  } else if (!recording_) {
    make_recording(batches, share);
  }
  if (!recording_) {
    const Numbers numbers = numbers_for(batches, share);
    compute(numbers);
    return numbers.measured.to_vector<double>();
  }
  Numbers& numbers = recording_->numbers;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Batch batch = on_device(model_, batches[i]);
    for (const nn::NamedTensor& t : batch.tensors()) numbers.batches[i].at(t.name).copy_(t.value);
  }
  numbers.share.fill(share);
  recording_->gradients->replay();
  for (size_t i = 0; i < recording_->left.size(); ++i) {
    if (recording_->left[i]) set_grad(optimizer_.parameters()[i].value, recording_->left[i]);
  }
  return numbers.measured.to_vector<double>();
}

void CapturedStep::spread() {
  parallel_.gather_parameters();
  masters_.refresh();
}

void CapturedStep::update(double lr, double grad_scale) {
  if (!recording_) {
    optimizer_.step(lr, grad_scale);
    spread();
  } else {
    const auto apply = [&] {
      optimizer_.apply();
      spread();
    };
    optimizer_.prepare(lr, grad_scale);
    if (!recording_->update) recording_->update = recording_of(apply);
    recording_->update ? recording_->update->replay() : apply();
  }
  optimizer_.zero_grad();
  last_ = form_;
}

// What the steps before kept for reuse goes back first: the recording has memory of its own.
std::unique_ptr<Graph> CapturedStep::recording_of(const std::function<void()>& work) {
  release_cached_memory(model_.device());
  try {
    return std::make_unique<Graph>(model_.device(), work);
  } catch (const OutOfMemory&) {
    record_ = false;
    return nullptr;
  } catch (const Error& e) {
    fail(e.kind(),
         std::string(e.what()) + "; a training step that does so cannot be recorded (train.graph=false runs it)");
  }
}

void CapturedStep::make_recording(const std::vector<Batch>& batches, double share) {
  Recording made{.numbers = numbers_for(batches, share)};
  made.gradients = recording_of([&] { compute(made.numbers); });
  if (made.gradients) {
    for (const nn::NamedTensor& piece : optimizer_.parameters()) made.left.push_back(grad(piece.value));
    recording_ = std::move(made);
  }
  nn::zero_grad(masters_);
}

}  // namespace braid::models
