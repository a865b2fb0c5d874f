#include "models/trainer.h"

#include <cmath>

#include "autograd/ops.h"
#include "nn/optim/clip.h"

namespace braid::models {

namespace {
int64_t count_valid(const Tensor& targets) {
  int64_t n = 0;
  for (int64_t t : targets.to_vector<int64_t>()) n += t >= 0;
  return n;
}

// The name of the first tensor of a forward pass that holds NaN or Inf, or "the loss itself".
std::string first_bad_tensor(const Dcformer& model, const std::vector<Batch>& batches) {
  NoGrad off;
  std::string bad;
  nn::Probe probe = [&](const std::string& name, const Tensor& value) {
    if (bad.empty() && !nn::all_finite(value)) bad = name;
  };
  for (const Batch& b : batches) model.hidden(b.ids, nullptr, &probe);
  return bad.empty() ? "the loss itself" : bad;
}

nn::Module& with_gradients(nn::Module& model) {
  nn::require_grad(model);
  return model;
}
}  // namespace

Trainer::Trainer(Dcformer& model, const nn::OptimizerOptions& options, double clip)
    : model_(model), optimizer_(nn::parameters(with_gradients(model)), options), clip_(clip) {}

StepResult Trainer::step(const std::vector<Batch>& micro_batches, double lr,
                         const std::function<void(const StepResult&)>& inspect) {
  StepResult& result = latest_ = {};
  for (const Batch& b : micro_batches) result.tokens += count_valid(b.targets);
  check(result.tokens > 0, ErrorKind::input,
        [] { return std::string("the batch has no target that counts: there is nothing to learn from"); });
  optimizer_.zero_grad();
  double share = 1 / static_cast<double>(result.tokens);
  double sum = 0;
  for (const Batch& b : micro_batches) {
    Tensor loss = scale(model_.loss_sum(b.ids, b.targets), share);
    sum += loss.item();
    backward(loss);
  }
  result.loss = sum;
  std::string at_step = " at step " + std::to_string(optimizer_.steps() + 1);
  check(std::isfinite(result.loss), ErrorKind::numerical, [&] {
    return "the loss is " + std::string(std::isnan(result.loss) ? "NaN" : "infinite") + at_step +
           "; the first tensor with NaN or Inf is " + first_bad_tensor(model_, micro_batches) +
           "; weights are untouched, lower the learning rate";
  });
  result.grad_norm = nn::global_norm(optimizer_.parameters());
  check(std::isfinite(result.grad_norm), ErrorKind::numerical, [&] {
    return "the gradient of " + nn::first_not_finite(optimizer_.parameters()) + " contains NaN or Inf" + at_step +
           "; weights are untouched, lower the learning rate";
  });
  if (inspect) inspect(result);
  optimizer_.step(lr, nn::clip_factor(result.grad_norm, clip_));
  optimizer_.zero_grad();
  return result;
}

double evaluate(const Dcformer& model, const std::vector<Batch>& batches) {
  NoGrad off;
  double sum = 0;
  int64_t tokens = 0;
  for (const Batch& b : batches) {
    sum += model.loss_sum(b.ids, b.targets).item();
    tokens += count_valid(b.targets);
  }
  return tokens > 0 ? sum / static_cast<double>(tokens) : 0;
}

}  // namespace braid::models
