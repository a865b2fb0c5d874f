// The diagnosis of a step whose loss or gradients are not finite.
#include <map>
#include <sstream>

#include "braid/models/training/trainer.h"
#include "braid/nn/optim/clip.h"

namespace braid::models {

namespace {

// The first tensor of a forward pass that holds NaN or Inf on any rank, by the order of computation.
std::string first_bad_tensor(const Model& model, const std::vector<Batch>& batches, const dist::ProcessMesh& mesh) {
  NoGrad off;
  int64_t computed = 0;
  std::string bad;  // "index name"
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& value) {
    ++computed;
    if (bad.empty() && !nn::all_finite(value)) bad = std::to_string(computed) + " " + name;
  }};
  for (const Batch& b : batches) model.observe(b.to(model.device()), observer);
  std::map<int64_t, std::string> found;  // of all ranks
  for (const std::string& text : mesh.world.gather_text(bad)) {
    std::istringstream in(text);
    int64_t index = 0;
    std::string name;
    if (in >> index >> name) found.emplace(index, name);
  }
  return found.empty() ? "the loss itself" : found.begin()->second;
}

}  // namespace

std::optional<std::string> Trainer::non_finite_reason(const StepMetrics& metrics,
                                                      const std::vector<Batch>& micro_batches) const {
  const std::string end = "; weights are untouched, lower the learning rate";
  const std::string at_step = " at step " + std::to_string(optimizer_->steps() + 1);
  if (!std::isfinite(metrics.loss)) {
    return "the loss is " + std::string(std::isnan(metrics.loss) ? "NaN" : "infinite") + at_step +
           "; the first tensor with NaN or Inf is " + first_bad_tensor(model_, micro_batches, mesh_) + end;
  }
  if (!std::isfinite(metrics.grad_norm)) {
    std::string name;
    for (const std::string& text : mesh_.world.gather_text(nn::first_not_finite(optimizer_->parameters()))) {
      if (name.empty()) name = text;
    }
    return "the gradient of " + name + " contains NaN or Inf" + at_step + end;
  }
  return std::nullopt;
}

}  // namespace braid::models
