// The diagnosis of a step whose weights, loss or gradients are not finite, or whose update would not be.
#include <limits>
#include <map>
#include <sstream>

#include "braid/autograd/record.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/clip.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

// The first tensor of a forward pass that holds NaN or Inf on any rank, by the order of computation.
std::string first_bad_tensor(const Model& model, const std::vector<Batch>& batches, const dist::ProcessMesh& mesh) {
  NoGrad off;
  int64_t computed = 0;
  std::string bad;  // "index name"
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& value) {
    ++computed;
    if (bad.empty() && !nn::all_finite(value)) bad = str(computed, " ", name);
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
  const std::string step = str("step ", optimizer_->steps() + 1), end = "; no update was made";
  const auto first_of_all_ranks = [&](const std::string& mine) {
    for (const std::string& name : mesh_.world.gather_text(mine)) {
      if (!name.empty()) return name;
    }
    return std::string();
  };
  if (!std::isfinite(metrics.loss)) {
    const std::string weights = first_of_all_ranks(nn::first_not_finite_value(optimizer_->parameters()));
    if (!weights.empty()) return "the weights before " + step + " contain NaN or Inf, first in " + weights + end;
    return str("the loss is ", std::isnan(metrics.loss) ? "NaN" : "infinite", " at ", step,
               "; the first tensor with NaN or Inf is ", first_bad_tensor(model_, micro_batches, mesh_), end);
  }
  if (!std::isfinite(metrics.grad_norm)) {
    return "the gradient of " + first_of_all_ranks(nn::first_not_finite(optimizer_->parameters())) +
           " contains NaN or Inf at " + step + end;
  }
  const double limit = largest_squarable(), clipped = metrics.grad_norm * nn::clip_factor(metrics.grad_norm, clip_);
  if (clipped > limit) {
    return "the gradient norm is " + detail::shortest(metrics.grad_norm) + " at " + step + ": expected at most " +
           detail::shortest(limit) + ", beyond which its squares overflow the optimizer's second moments; clip it" +
           end;
  }
  return std::nullopt;
}

// The largest gradient whose square the optimizer's state holds; infinite where it holds no squares.
double Trainer::largest_squarable() const {
  bool f64 = true, squares = false;
  for (const std::string& suffix : nn::state_suffixes(optimizer_->options()))
    squares = squares || nn::is_second_moment(suffix);
  for (const nn::NamedTensor& p : parameters_) f64 = f64 && p.value.dtype() == DType::f64;
  if (!squares) return std::numeric_limits<double>::infinity();
  return std::sqrt(f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max());
}

StepMetrics Trainer::step(const std::vector<Batch>& micro_batches, double lr) {
  StepMetrics metrics = forward_backward(micro_batches);
  if (const std::optional<std::string> reason = non_finite_reason(metrics, micro_batches)) {
    discard();
    fail(ErrorKind::numerical, *reason + "; lower the learning rate");
  }
  apply(lr);
  return metrics;
}

}  // namespace braid::models
