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
  check(std::isfinite(result.loss), ErrorKind::numerical, [&] {
    return "the loss is " + std::string(std::isnan(result.loss) ? "NaN" : "infinite") + " at step " +
           std::to_string(optimizer_.steps() + 1) +
           "; the weights are untouched: lower the learning rate, or look at the data of this step";
  });
  result.grad_norm = nn::checked_global_norm(optimizer_.parameters());
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
